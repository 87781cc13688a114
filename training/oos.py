"""Generated out-of-scope questions: general knowledge, opinions, how-to. No public list is copied."""

from grammar import expand

TOPICS = """the moon|mars|jupiter|the sun|black holes|the roman empire|world war two|the french revolution|the pyramids|dinosaurs|sharks|
penguins|bees|wolves|volcanoes|earthquakes|gravity|quantum physics|dna|photosynthesis|the stock market|inflation|bitcoin|democracy|
buddhism|yoga|jazz|opera|chess|soccer|baseball|tennis|golf|cricket|the olympics|the super bowl|guitars|pianos|violins|cameras|laptops|
electric cars|airplanes|submarines|bridges|skyscrapers|glass|steel|paper|plastic|cotton|diamonds|gold|oil|coal|solar power|wind turbines|
nuclear energy|machine learning|operating systems|databases|python programming|javascript|video games|movies|novels|poetry|photography|
painting|sculpture|ballet|philosophy|psychology|sociology|economics|history|geography|biology|chemistry|astronomy|algebra|calculus|
statistics|grammar|spanish verbs|sign language|college|high school|kindergarten|marriage|parenting|puppies|kittens|goldfish|parrots|
horses|cows|elephants|tigers|snakes|spiders|mosquitoes|roses|oak trees|cactus|mushrooms|vitamins|sleep|dreams|memory|stress|headaches|
the flu|diabetes|cancer|surgery|dentists|lawyers|astronauts|firefighters|plumbers|politicians|kings|knights|pirates|vikings|samurai|
the internet|social media|podcasts|newspapers|television shows|reality tv|superheroes|dragons|ghosts|aliens|zombies|tattoos|fashion|
shoes|perfume|hairstyles|makeup|furniture|carpets|windows|gardens|lawns|swimming pools|camping|hiking|skiing|surfing|fishing|hunting""".replace("\n", "").split("|")
PEOPLE = """albert einstein|isaac newton|marie curie|napoleon|cleopatra|julius caesar|shakespeare|mozart|beethoven|picasso|van gogh|leonardo da vinci|
martin luther king|abraham lincoln|george washington|nelson mandela|gandhi|elvis presley|michael jordan|serena williams|lionel messi|
tom hanks|meryl streep|steven spielberg|walt disney|charles darwin|galileo|plato|aristotle|socrates|nikola tesla|thomas edison|
henry ford|amelia earhart|neil armstrong|frida kahlo|jane austen|mark twain|ernest hemingway|agatha christie|stephen king|the pope|
the president|the queen of england|the prime minister of canada|the mayor of new york|the ceo of google|the founder of amazon""".replace("\n", "").split("|")
PLACES = """france|germany|japan|china|india|brazil|egypt|kenya|canada|mexico|russia|australia|italy|spain|greece|norway|texas|california|alaska|florida|
ohio|the amazon|the sahara|the pacific ocean|mount everest|the grand canyon|the eiffel tower|the great wall|niagara falls|antarctica|
iceland|cuba|peru|vietnam|thailand|nigeria|morocco|ireland|scotland|hawaii""".replace("\n", "").split("|")
THINGS = """a bicycle|a guitar|a birdhouse|a campfire|a paper airplane|a website|a resume|a poem|a speech|a novel|a budget spreadsheet|a tent|a tie|a scarf|
a cake stand|a bookshelf|a treehouse|a clogged drain|a leaky faucet|a flat roof|a broken zipper|a cracked screen|a wooden deck|a fence|a garden bed|
a compost bin|a robot|an app|a podcast|a rocket|a snowman|a kite|a sweater|a garage sale|a wedding|a surprise party|a science project""".replace("\n", "").split("|")
SAY = [
    "who (is|was) {person}", "when (was|did) {person} (born|die|become famous)", "what (did|is) {person} (do|known for|famous for)", "where (was|did) {person} (born|live|grow up|go to school)", "how (old|tall|rich) (is|was) {person}",
    "tell me about {topic}", "what (is|are) {topic}", "(why|how) (do|does) {topic} (work|exist|matter)", "who invented {topic}", "what is the history of {topic}", "how (many|much) {topic} (are there|exist) in {place}",
    "what is the (capital|population|largest city|official language|currency|national animal|flag|highest mountain|longest river) of {place}", "how (big|far|old|large) is {place}", "is {place} (a country|a state|an island|bigger than {place})",
    "who (won|lost) the (game|match|election|world cup|oscars|championship|super bowl|race)( last night| last year| yesterday|)", "what (was|is) the score of the (lakers|yankees|cubs|bulls|packers|celtics) game", "who is playing (tonight|this weekend|in the finals)",
    "how do (i|you) (make|build|fix|repair|write|paint|design) {thing}", "what (do i need|is needed) to (make|build|fix|write) {thing}", "what is the best way to (make|build|fix|learn about|clean) {thing}",
    "(can|could) you (explain|teach me) {topic}", "what are some (facts|good books|documentaries|jokes|rumors) about {topic}", "what do (you|people) think about {topic}", "do (you|people) (like|believe in|enjoy) {topic}",
    "(which|what) (team|school|college|laptop|phone|car|movie|book|song|actor|breed of dog) is the (best|worst|oldest|most popular)( in {place}|)", "is {topic} (good|bad|dangerous|safe|healthy|legal) (for you|in {place}|)",
    "how (fast|long|deep|heavy|hot|old|high) (is|are) {topic}", "what (causes|is the cause of) {topic}", "why is the (sky blue|ocean salty|grass green|sun hot|moon full)", "what (year|day|century) did {topic} (start|end|begin)",
    "when (does|will) the (store|museum|mall|library|park|gym|pharmacy|stadium) (open|close)", "(is|are) the (store|museum|mall|library|post office|bank) open (today|on sunday)", "what (channel|time) is the (game|show|movie|debate) on",
    "what (is|are) the (latest|top|current) (news|headlines|stories|trends)( in {place}| about {topic}|)", "how (is|did) the (stock market|dow|nasdaq) (doing|do|close)( today|)", "what is the (price|stock price|value) of (apple|tesla|google|amazon|gold|silver|oil|one share of ibm)",
    "(who|what) is the (coach|owner|ceo|director|president|singer|lead actor|author) of (the (lakers|cowboys|red sox)|apple|tesla|titanic|jaws|harry potter)", "how many (people|students|employees|planets|bones|countries|teeth|calories does running burn|legs does a spider have|keys on a piano) (are there|exist|)( in {place}|)",
    "(give me|find me|i need) (a |some |)(quote|poem|riddle|story|picture|photos|wallpaper|video|tutorial) (about|of|on) {topic}", "help me (study for my|with my|write my) (history|math|biology|english|science|chemistry) (exam|homework|essay|test)",
    "what should i (name|wear|study|draw|write about|do with my life|be when i grow up|get my (mom|wife|husband|boss) for (christmas|a birthday))", "what is (the|a) (synonym|antonym|rhyme) (of|for) (happy|quick|beautiful|time|love)",
    "how do (cats|dogs|birds|fish|whales|plants|computers|engines|magnets|vaccines|planes|telescopes) (communicate|sleep|breathe|work|fly|see|grow|move)", "can (dogs|cats|horses|babies|fish|parrots) (eat|see|hear|understand|drink) (chocolate|color|music|english|milk|grapes)",
    "what (size|kind|type|brand) of (tire|battery|bulb|shoes|dog|paint|wood|engine|oil filter) (should i buy|is best|do i need)", "(search|google|look up) {topic}( online| on the web|)", "(download|install|update) (an app|the latest version|photoshop|a game|chrome)",
    "how do i (lose weight|get rich|make friends|quit smoking|learn {topic}|get better at {topic}|stop snoring|train my dog|start a business|meditate|tie a tie|change a diaper|grow tomatoes|remove a stain|get rid of ants)", "what does (it mean to|a dream about) (be happy|fall in love|flying|losing teeth|success) mean",
    "(post|share|upload) (this|a photo|my status) (on|to) (facebook|instagram|twitter)", "(order|buy) (me |)(a new phone|tickets to the concert|shoes|a dress|a couch)( online|)", "are (aliens|ghosts|vampires|unicorns|dragons) real", "(read|tell) me (a bedtime story|a story|the news|a poem)",
    "what is the (meaning|origin) of the (word|name) (serendipity|karma|emma|oliver|sarah|nebula)", "how (would|do) (i|you) say (you are wrong about|something nice about) {topic}", "what are the (rules|benefits|side effects|symptoms|advantages|parts|types) of {topic}",
    "which (is|are) (better|older|bigger|faster) {topic} or {topic}", "did {person} (ever |)(meet|marry|like) {person}", "what happened (in|during) (1492|1776|1945|1969|2001|the cold war|the great depression)", "(who|what) (is|was) the first (person|animal|woman|man) (in space|on the moon|to fly|to climb everest)"]


def question(rng):
    pools = {"topic": TOPICS, "person": PEOPLE, "place": PLACES, "thing": THINGS}
    s = "".join(p for p, _ in expand(rng.choice(SAY), rng, lambda n: [(rng.choice(pools[n]), None)]))
    return " ".join(s.split())
