"""German, French and Spanish: homes with such names, commands by templates of our own, Home Assistant's sentences
(ha.py), and what is no command. A further language is a further entry of TONGUES."""

import re

import sites
import words as W
from plans import Span
from sentences import Clause, NoFit
from sites import COVERS, IMPLIED, LOCKS, OPENS, POWER, RUNS, Area, Floor, Thing
from template import expand


def _names(text):
    """ "kind:name=alias,name;..." by line"""
    out = {}
    for line in text.strip().split("\n"):
        kind, _, rest = line.partition(":")
        out[kind] = [[n.strip() for n in x.replace("=", ",").split(",")] for x in rest.split(";")]
    return out


DE = {
    "areas": "Küche;Wohnzimmer=Stube;Schlafzimmer;Bad=Badezimmer;Flur=Gang,Diele;Büro=Arbeitszimmer;Garage;Garten;Keller;Dachboden=Speicher;Kinderzimmer;Esszimmer;Gästezimmer;Terrasse;Balkon;Waschküche;Eingang;Treppenhaus;Speisekammer;Werkstatt;Wintergarten;Hobbyraum;Toilette=WC;Hauswirtschaftsraum;Annas Zimmer;Pool;Schuppen;Halle;Labor;Lager",
    "floors": [["Erdgeschoss=unten,Parterre", "Obergeschoss=oben,erster Stock", "Untergeschoss=Kellergeschoss"], ["Erdgeschoss", "erster Stock=oben", "zweiter Stock"], ["unten", "oben"]],
    "things": _names("""light:Deckenlampe;Stehlampe;Schreibtischlampe;Nachttischlampe;Leselampe;Lichterkette;Spots,Strahler;Kronleuchter;Küchenlicht;Wandlampe;Außenlicht;Leuchtstreifen,LED-Band;Hängelampe;Esstischlampe
switch:Steckdose;Kaffeesteckdose;Drucker;Router;Weihnachtsbaum;Springbrunnen;Heizdecke;Bügeleisen;Ladegerät;Aquarium
fan:Deckenventilator;Ventilator;Lüfter,Lüftung;Dunstabzug,Abzugshaube;Badlüfter
blind:Jalousie;Rollo;linke Jalousie;Küchenrollo
curtain:Vorhang;linker Vorhang;Gardine
shutter:Rollladen,Rolladen;Terrassenrollladen;rechter Rollladen
awning:Markise
door:Haustür,Eingangstür;Hintertür;Balkontür;Terrassentür;Kellertür
garage:Garagentor
gate:Gartentor;Einfahrtstor
window:Dachfenster;Küchenfenster;Badfenster
lock:Türschloss,Haustürschloss;Tresor;Briefkasten
climate:Thermostat;Klimaanlage;Wärmepumpe
heating:Heizung,Heizkörper;Backofen,Ofen;Fußbodenheizung;Boiler;Kamin;Wasserkocher;Sauna;Grill
cooling:Kühlschrank;Gefrierschrank,Tiefkühler;Weinkühler
media:Fernseher,Glotze;Radio;Stereoanlage,Anlage;Lautsprecher;Beamer;Küchenradio
vacuum:Staubsauger,Saugroboter;Wischroboter;Rosi
mower:Rasenmäher,Mähroboter
appliance:Spülmaschine,Geschirrspüler;Waschmaschine;Trockner;Kaffeemaschine;Brotbackautomat;Mikrowelle
pump:Poolpumpe;Wasserpumpe;Pumpe 3
machine:Fräse;Drehbank;Kompressor;Mischer;Presse 2;Förderband
siren:Alarmanlage
sensor:Außentemperatur;Thermometer;Luftfeuchtigkeit"""),
    "class": {"light": "die Lichter|das Licht|die Lampen|die Beleuchtung|Lichter|Licht", "blind": "die Jalousien|die Rollos", "curtain": "die Vorhänge", "shutter": "die Rollläden|die Rolläden", "fan": "die Ventilatoren|die Lüfter", "heating": "die Heizung|die Heizungen", "window": "die Fenster", "door": "die Türen", "media": "die Musik|die Lautsprecher", "switch": "die Steckdosen"},
    "the": "die |das |den |der |meine |meinen |", "in": "im |in der |in |auf dem |auf der |in meinem ", "here": "hier|hier drin|in diesem Zimmer|in diesem Raum|im Raum", "everywhere": "überall|im ganzen Haus|in allen Räumen|in der ganzen Wohnung",
    "q": {"brightness": "Helligkeit", "temperature": "Temperatur", "volume": "Lautstärke", "position": "Position", "speed": "Geschwindigkeit|Drehzahl", "pressure": "Druck", "humidity": "Luftfeuchtigkeit", "power": "Leistung"},
    "unit": {"brightness": " Prozent| %|%|", "position": " Prozent|%| %", "volume": " Prozent|%||", "temperature": " Grad| Grad Celsius|°|", "speed": " Prozent|%| Umdrehungen", "pressure": " bar", "humidity": " Prozent|%", "power": " Prozent|%| Watt"},
    "colors": "rot|blau|grün|gelb|lila|orange|rosa|weiß|türkis|warmweiß|kaltweiß|violett", "items": "Milch|Eier|Brot|Butter|Kaffee|Tee|Äpfel|Bananen|Reis|Nudeln|Olivenöl|Klopapier|Spülmittel|Batterien|Katzenfutter|Käse|Tomaten|Zwiebeln|Kartoffeln|Mehl|Zucker|zwei Liter Milch|Schrauben", "lists": "Einkaufsliste|Liste|To-do-Liste",
    "tasks": "den Müll rausbringen|die Blumen gießen|Mama anrufen|die Miete zahlen|die Katze füttern|die Medizin nehmen|das Fenster schließen|den Ofen ausschalten|den Zahnarzt anrufen|das Auto tanken", "messages": "das Essen ist fertig|ich komme später|wir fahren jetzt los|bitte kommt runter|das Paket ist da", "music": "Jazz|klassische Musik|die Beatles|Radio Paradise|etwas Ruhiges|meine Lieblingslieder|Rockmusik|Mozart|Hörbuch", "timers": "Pizza|Nudeln|Eier|Tee|Kuchen|Wäsche",
    "duration": lambda r: r.choice(("einer halben Stunde|eine halbe Stunde|einer Stunde|eine Stunde|einer Viertelstunde|eine Minute|anderthalb Stunden".split("|"))) if r.random() < 0.2 else f"{r.choice((5, 10, 15, 20, 30, 45, r.randint(2, 59)))} " + r.choice(("Minuten", "Minuten", "Minuten", "Sekunden", "Stunden")),
    "clock": lambda r: r.choice((f"{r.randint(1, 23)} Uhr", f"{r.randint(1, 23)} Uhr {r.choice((15, 30, 45))}", f"{r.randint(6, 23)}:{r.choice(('00', '15', '30', '45'))} Uhr", f"halb {r.choice('sieben acht neun zehn drei vier sechs'.split())}", f"{r.choice('sieben acht neun zehn drei vier sechs'.split())} Uhr", f"morgen um {r.randint(6, 22)} Uhr", f"heute Abend um {r.randint(6, 10)}", "morgen früh")),
    "states": {"is_on": "an|eingeschaltet", "is_off": "aus|ausgeschaltet", "is_open": "offen|auf|geöffnet", "is_closed": "zu|geschlossen", "is_locked": "abgeschlossen|verriegelt|zugesperrt", "is_unlocked": "aufgeschlossen|entriegelt|nicht abgeschlossen", "is_running": "am Laufen|fertig"},
    "T": {
        "on": "schalte {x} ein|schalt {x} an|mach {x} an|{x} an|{x} ein|{x} einschalten|{x} anmachen|kannst du {x} anmachen|ich hätte gern {x} an|dreh {x} auf|aktiviere {x}|mach bitte mal {x} an|{x} soll angehen|könntest du {x} einschalten",
        "off": "schalte {x} aus|schalt {x} ab|mach {x} aus|{x} aus|{x} ausschalten|{x} ausmachen|kannst du {x} ausmachen|dreh {x} ab|deaktiviere {x}|mach bitte mal {x} aus|{x} soll ausgehen|könntest du {x} ausschalten|{x} kann aus|lösch {x}",
        "open": "öffne {x}|mach {x} auf|{x} öffnen|{x} auf|fahr {x} hoch|zieh {x} hoch|{x} hoch|kannst du {x} aufmachen", "close": "schließe {x}|schließ {x}|mach {x} zu|{x} schließen|{x} zu|fahr {x} runter|lass {x} runter|{x} runter|kannst du {x} zumachen",
        "lock": "schließ {x} ab|sperr {x} ab|verriegle {x}|{x} abschließen|{x} absperren|mach {x} dicht", "unlock": "schließ {x} auf|sperr {x} auf|entriegle {x}|{x} aufschließen|{x} aufsperren",
        "start": "starte {x}|lass {x} laufen|{x} starten|wirf {x} an|{x} soll loslegen|lass {x} loslegen", "stop": "stopp {x}|stoppe {x}|halte {x} an|{x} stoppen|{x} anhalten|{x} stopp", "dock": "schick {x} zur Ladestation|{x} soll zurück zur Basis|{x} nach Hause",
        "set": "stell {x} auf {v}|stelle {x} auf {v}|{x} auf {v}|setz {x} auf {v}|mach {x} auf {v}|dreh {x} auf {v}|dimme {x} auf {v}|bring {x} auf {v}|regel {x} auf {v}", "set_q": "stell die {q} von {x} auf {v}|setze die {q} von {x} auf {v}|{x} {q} {v}|{q} von {x} auf {v}|ändere die {q} von {x} auf {v}|erhöhe die {q} von {x} auf {v}|senke die {q} von {x} auf {v}",
        "color": "mach {x} {v}|färbe {x} {v}|stell {x} auf {v}|{x} auf {v}|ich will {x} in {v}", "up_q": "erhöhe die {q} von {x}|{q} von {x} höher|mehr {q} bei {x}|dreh die {q} von {x} hoch", "down_q": "verringere die {q} von {x}|{q} von {x} niedriger|senke die {q} von {x}|dreh die {q} von {x} runter",
        "brighter": "heller|mach es heller|mach das Licht heller|etwas heller bitte|es ist zu dunkel", "darker": "dunkler|mach es dunkler|mach das Licht dunkler|etwas dunkler|es ist zu hell|dimm das Licht", "warmer": "wärmer|mach es wärmer|mir ist kalt|es ist zu kalt|dreh die Heizung hoch", "cooler": "kälter|kühler|mach es kühler|es ist zu warm|mir ist zu heiß|dreh die Heizung runter", "louder": "lauter|mach lauter|dreh lauter|Lautstärke hoch", "quieter": "leiser|mach leiser|Lautstärke runter|zu laut",
        "pause": "Pause|pausiere die Musik|halt die Musik an|Musik anhalten", "resume": "weiter|mach weiter mit der Musik|Musik fortsetzen|spiel weiter", "next": "nächstes Lied|nächster Titel|überspring das Lied|weiter zum nächsten", "previous": "voriges Lied|letztes Lied nochmal|vorheriger Titel|einen Titel zurück", "mute": "Ton aus|stumm|schalte auf stumm|mach den Ton aus", "unmute": "Ton an|Stummschaltung aus|mach den Ton wieder an", "play": "spiel {w}|spiele {w}|ich will {w} hören|mach {w} an|leg {w} auf",
        "timer": "stell einen Timer auf {d}|Timer auf {d}|stelle einen Wecker in {d}|Timer für {d}|starte einen Timer von {d}|erinnere mich in {d}", "timer_cancel": "lösch den Timer|Timer abbrechen|stoppe den Timer|brich den Timer ab", "timer_ask": "wie lange läuft der Timer noch|wie viel Zeit ist noch auf dem Timer|wie lange noch", "alarm": "weck mich um {t}|stell einen Wecker auf {t}|stell den Wecker auf {t}|Wecker um {t}", "alarm_cancel": "lösch den Wecker|Wecker aus|stell den Wecker ab", "remind": "erinnere mich um {t} daran, {w}|erinner mich {t} an {w}|erinnere mich daran, {w}",
        "add": "setz {i} auf die {l}|schreib {i} auf die {l}|{i} auf die {l}|füge {i} zur {l} hinzu|wir brauchen {i}|kauf {i}", "remove": "streich {i} von der {l}|nimm {i} von der {l}|lösche {i} von der {l}|entferne {i} aus der {l}|hake {i} auf der {l} ab|{i} von der {l} löschen|{i} aus der {l} entfernen|{i} auf der {l} abhaken|schließe {i} auf der {l} ab|{i} ist erledigt, streich es von der {l}", "list": "was steht auf der {l}|lies mir die {l} vor|zeig die {l}", "call": "ruf {p} an|telefoniere mit {p}|{p} anrufen", "announce": "sag allen, {w}|durchsage: {w}|gib durch, {w}",
        "is": "ist {x} {st}|ist {x} noch {st}|{x} {st}?|hab ich {x} {st} gelassen|schau mal, ob {x} {st} ist", "temp": "wie warm ist es {in}|wie kalt ist es {in}|welche Temperatur ist {in}|Temperatur {in}", "which": "welche {c} sind {st}|was ist {in} noch {st}|sind {in} noch {c} {st}",
        "yes": "ja|ja bitte|klar|mach das|genau|jawohl|in Ordnung", "no": "nein|nee|lieber nicht|nein danke|lass es", "cancel": "vergiss es|abbrechen|schon gut|egal", "greet": "hallo|guten Morgen|guten Abend|hi", "bye": "tschüss|gute Nacht|bis später", "thanks": "danke|danke schön|vielen Dank|super, danke", "weather": "wie wird das Wetter|regnet es morgen|brauche ich einen Schirm|Wetter morgen", "time": "wie spät ist es|wie viel Uhr ist es", "date": "welcher Tag ist heute|welches Datum haben wir", "joke": "erzähl mir einen Witz", "help": "was kannst du|was kann ich sagen", "knowledge": "wer war Goethe|was ist die Hauptstadt von Frankreich|wie hoch ist der Eiffelturm",
        "negated": "mach {x} nicht an|schalte {x} nicht aus|lass {x} an|lass {x} aus|lass {x} in Ruhe|{x} bleibt an|{x} bleibt zu|nicht {x}|öffne {x} nicht|bloß nicht {x} öffnen|fass {x} nicht an|du sollst {x} nicht ausmachen|ich will nicht, dass du {x} anmachst|auf keinen Fall {x} aufschließen",
        "reported": "ich habe {x} schon ausgemacht|Anna hat {x} gestern angelassen|jemand hat {x} geöffnet|gestern war {x} den ganzen Tag an|{x} war offen, als ich kam|er hat gesagt, ich soll {x} ausmachen|früher ging {x} von allein an", "question": "soll ich {x} ausmachen|darf man {x} öffnen|warum ist {x} immer an|wie viel Strom braucht {x}|kann {x} auch kühlen|wer hat {x} angemacht|was passiert, wenn ich {x} öffne|ist es sicher, {x} anzulassen", "condition": "wenn es regnet, schließ {x}|falls jemand kommt, mach {x} an|sobald es dunkel wird, schalte {x} ein|mach {x} aus, wenn ich gehe|wir könnten {x} ausmachen, aber es ist spät",
        "retracted": "mach {x} an, ach nein, doch nicht|schalte {x} aus, nein warte, lass es|öffne {x}, vergiss es|mach {x} aus, egal", "talk": "{x} ist ganz neu|ich mag {x}|{x} war teuer|wir waren gestern {in}|das Essen war lecker|ich habe heute keine Lust|morgen kommt meine Schwester|hast du den Film gesehen|das ist doch Quatsch|ich muss noch einkaufen|wie war dein Tag|ich gehe jetzt ins Bett|der Hund muss raus|die Kinder spielen {in}|wir fahren im Sommer nach Italien|gib mir mal das Salz|komm her|mach die Hausaufgaben|zieh deine Schuhe an|hör auf zu weinen|das Licht am Ende des Tunnels|er hat die Tür hinter sich zugemacht|pass auf|Papa, komm mal",
    },
    "polite": "bitte {c}|{c} bitte|{c}, danke|hey, {c}|ok, {c}|also, {c}|jetzt {c}|{c} mal bitte|mir ist kalt, {c}|ich gehe ins Bett, {c}|es ist dunkel, {c}|{c}, ich sehe nichts|{c}, sei so lieb|Computer, {c}|Shoal, {c}", "and": " und | und dann |, | und bitte |. ",
    "spelled": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig".split(),
}
FR = {
    "areas": "cuisine;salon=séjour;chambre;salle de bain;couloir=entrée;bureau;garage;jardin;cave=sous-sol;grenier;chambre des enfants;salle à manger;chambre d'amis;terrasse;balcon;buanderie;escalier;cellier;atelier;véranda;toilettes;chambre de Léa;piscine;abri;hall;laboratoire;entrepôt",
    "floors": [["rez-de-chaussée=en bas", "premier étage=étage,en haut", "sous-sol"], ["rez-de-chaussée", "premier étage", "deuxième étage"]],
    "things": _names("""light:plafonnier;lampadaire;lampe de bureau;lampe de chevet;liseuse;guirlande;spots;lustre;applique;lampe extérieure;ruban led;suspension;veilleuse
switch:prise;prise café;imprimante;routeur;sapin de Noël;fontaine;couverture chauffante;fer à repasser;chargeur;aquarium
fan:ventilateur de plafond;ventilateur;hotte;extracteur,VMC
blind:store;store gauche;store de la cuisine
curtain:rideau;rideau gauche;voilage
shutter:volet;volet roulant;volet droit
awning:store banne
door:porte d'entrée;porte de derrière;porte du balcon;porte de la cave
garage:porte de garage
gate:portail;portillon
window:vélux;fenêtre de la cuisine;fenêtre du bureau
lock:serrure,verrou;coffre-fort;boîte aux lettres
climate:thermostat;climatisation,clim;pompe à chaleur
heating:chauffage,radiateur;four;plancher chauffant;chaudière;cheminée;bouilloire;sauna;barbecue
cooling:frigo,réfrigérateur;congélateur;cave à vin
media:télé,télévision;radio;chaîne hi-fi,chaîne;enceinte;projecteur
vacuum:aspirateur,robot aspirateur;robot laveur;Rosie
mower:tondeuse,robot tondeuse
appliance:lave-vaisselle;lave-linge,machine à laver;sèche-linge;machine à café,cafetière;micro-ondes
pump:pompe de piscine;pompe à eau;pompe 3
machine:fraiseuse;tour;compresseur;mélangeur;presse 2;convoyeur
siren:alarme
sensor:température extérieure;thermomètre;humidité"""),
    "class": {"light": "les lumières|la lumière|les lampes|l'éclairage", "blind": "les stores", "curtain": "les rideaux", "shutter": "les volets", "fan": "les ventilateurs", "heating": "le chauffage|les radiateurs", "window": "les fenêtres", "door": "les portes", "media": "la musique|les enceintes", "switch": "les prises"},
    "the": "le |la |les |l'|mon |ma |", "in": "dans le |dans la |de la |du |dans |au ", "here": "ici|dans cette pièce|dans la pièce", "everywhere": "partout|dans toute la maison|dans toutes les pièces",
    "q": {"brightness": "luminosité", "temperature": "température", "volume": "volume", "position": "position", "speed": "vitesse", "pressure": "pression", "humidity": "humidité", "power": "puissance"},
    "unit": {"brightness": " pour cent| %|%|", "position": " pour cent|%| %", "volume": " pour cent|%||", "temperature": " degrés|°|", "speed": " pour cent|%| tours", "pressure": " bars| bar", "humidity": " pour cent|%", "power": " pour cent|%| watts"},
    "colors": "rouge|bleu|vert|jaune|violet|orange|rose|blanc|turquoise|blanc chaud|blanc froid", "items": "du lait|lait|œufs|pain|beurre|café|thé|pommes|bananes|riz|pâtes|huile d'olive|papier toilette|piles|croquettes|fromage|tomates|oignons|farine|sucre|deux litres de lait|vis", "lists": "liste de courses|liste|liste de tâches",
    "tasks": "sortir les poubelles|arroser les plantes|appeler maman|payer le loyer|nourrir le chat|prendre mes médicaments|fermer la fenêtre|éteindre le four|appeler le dentiste", "messages": "le repas est prêt|je serai en retard|on part maintenant|descendez s'il vous plaît|le colis est arrivé", "music": "du jazz|de la musique classique|les Beatles|FIP|quelque chose de calme|mes chansons préférées|du rock|Mozart|un livre audio", "timers": "pizza|pâtes|œufs|thé|gâteau|lessive",
    "duration": lambda r: r.choice(("une demi-heure|une heure|un quart d'heure|une minute|une heure et demie|trois quarts d'heure".split("|"))) if r.random() < 0.2 else f"{r.choice((5, 10, 15, 20, 30, 45, r.randint(2, 59)))} " + r.choice(("minutes", "minutes", "minutes", "secondes", "heures")),
    "clock": lambda r: r.choice((f"{r.randint(1, 23)} heures", f"{r.randint(1, 23)} h", f"{r.randint(1, 23)}h{r.choice((15, 30, 45))}", f"{r.randint(6, 23)}:{r.choice(('00', '15', '30', '45'))}", f"{r.choice('sept huit neuf dix trois quatre six'.split())} heures et demie", f"{r.choice('sept huit neuf dix trois quatre six'.split())} heures", f"demain à {r.randint(6, 22)} heures", f"ce soir à {r.randint(6, 10)} heures", "demain matin")),
    "states": {"is_on": "allumé|allumée|en marche", "is_off": "éteint|éteinte", "is_open": "ouvert|ouverte|ouverts", "is_closed": "fermé|fermée|fermés", "is_locked": "verrouillé|verrouillée|fermée à clé", "is_unlocked": "déverrouillé|déverrouillée", "is_running": "en train de tourner|terminé"},
    "T": {
        "on": "allume {x}|mets {x} en marche|active {x}|{x} allumé|peux-tu allumer {x}|tu peux allumer {x}|allumer {x}|mets {x}|je voudrais {x} allumé|branche {x}", "off": "éteins {x}|arrête {x}|désactive {x}|coupe {x}|{x} éteint|peux-tu éteindre {x}|tu peux éteindre {x}|éteindre {x}|ferme {x} s'il te plaît, je veux dire éteins",
        "open": "ouvre {x}|ouvrir {x}|lève {x}|monte {x}|peux-tu ouvrir {x}|remonte {x}", "close": "ferme {x}|fermer {x}|baisse {x}|descends {x}|peux-tu fermer {x}", "lock": "verrouille {x}|ferme {x} à clé|verrouiller {x}", "unlock": "déverrouille {x}|déverrouiller {x}|ouvre le verrou de {x}",
        "start": "démarre {x}|lance {x}|mets {x} en route|fais tourner {x}|démarrer {x}", "stop": "stoppe {x}|arrête {x}|stop {x}|arrêter {x}", "dock": "renvoie {x} à sa base|{x} à la base|range {x}",
        "set": "mets {x} à {v}|règle {x} à {v}|règle {x} sur {v}|{x} à {v}|passe {x} à {v}|baisse {x} à {v}|monte {x} à {v}", "set_q": "mets la {q} de {x} à {v}|règle la {q} de {x} à {v}|{q} de {x} à {v}|change la {q} de {x} à {v}|augmente la {q} de {x} à {v}|baisse la {q} de {x} à {v}",
        "color": "mets {x} en {v}|passe {x} en {v}|change {x} en {v}|{x} en {v}|je veux {x} en {v}", "up_q": "augmente la {q} de {x}|monte la {q} de {x}|plus de {q} pour {x}", "down_q": "diminue la {q} de {x}|baisse la {q} de {x}|moins de {q} pour {x}",
        "brighter": "plus clair|plus de lumière|augmente la lumière|il fait trop sombre", "darker": "moins fort la lumière|baisse la lumière|tamise la lumière|c'est trop lumineux", "warmer": "plus chaud|j'ai froid|il fait trop froid|monte le chauffage", "cooler": "moins chaud|plus frais|j'ai trop chaud|il fait trop chaud|baisse le chauffage", "louder": "plus fort|monte le son|augmente le volume", "quieter": "moins fort|baisse le son|baisse le volume|trop fort",
        "pause": "pause|mets la musique en pause|mets en pause", "resume": "reprends|reprends la musique|continue la lecture", "next": "chanson suivante|morceau suivant|passe à la suivante", "previous": "chanson précédente|morceau précédent|reviens en arrière d'une chanson", "mute": "coupe le son|muet|sans le son", "unmute": "remets le son|rétablis le son", "play": "joue {w}|mets {w}|je veux écouter {w}|lance {w}|passe {w}",
        "timer": "mets un minuteur de {d}|minuteur de {d}|lance un minuteur de {d}|minuterie de {d}|compte {d}|règle un minuteur sur {d}", "timer_cancel": "annule le minuteur|arrête le minuteur|supprime le minuteur", "timer_ask": "combien de temps reste-t-il sur le minuteur|il reste combien de temps|combien de temps encore", "alarm": "réveille-moi à {t}|mets un réveil à {t}|règle le réveil à {t}|réveil à {t}", "alarm_cancel": "annule le réveil|supprime le réveil|éteins le réveil", "remind": "rappelle-moi de {w} à {t}|rappelle-moi à {t} de {w}|rappelle-moi de {w}",
        "add": "ajoute {i} à la {l}|mets {i} sur la {l}|{i} sur la {l}|il faut {i}|on a besoin de {i}|achète {i}", "remove": "enlève {i} de la {l}|retire {i} de la {l}|supprime {i} de la {l}|coche {i} sur la {l}|raye {i} de la {l}|efface {i} de la {l}|{i} est fait, retire-le de la {l}", "list": "qu'y a-t-il sur la {l}|lis-moi la {l}|montre la {l}", "call": "appelle {p}|téléphone à {p}|appeler {p}", "announce": "annonce que {w}|dis à tout le monde que {w}|diffuse {w}",
        "is": "est-ce que {x} est {st}|{x} est {st}|{x} est toujours {st}|vérifie si {x} est {st}|ai-je laissé {x} {st}", "temp": "quelle température fait-il {in}|il fait combien {in}|quelle est la température {in}|température {in}", "which": "quels {c} sont {st}|qu'est-ce qui est {st} {in}|y a-t-il des {c} {st} {in}",
        "yes": "oui|oui s'il te plaît|d'accord|vas-y|bien sûr|exactement", "no": "non|non merci|surtout pas|laisse", "cancel": "laisse tomber|annule|oublie ça|tant pis", "greet": "bonjour|salut|bonsoir", "bye": "au revoir|bonne nuit|à plus tard", "thanks": "merci|merci beaucoup|super, merci", "weather": "quel temps fait-il|va-t-il pleuvoir demain|ai-je besoin d'un parapluie|météo de demain", "time": "quelle heure est-il|il est quelle heure", "date": "quel jour sommes-nous|quelle est la date", "joke": "raconte-moi une blague", "help": "que sais-tu faire|qu'est-ce que je peux dire", "knowledge": "qui était Victor Hugo|quelle est la capitale de l'Espagne|quelle est la hauteur de la tour Eiffel",
        "negated": "n'allume pas {x}|n'éteins pas {x}|laisse {x} allumé|laisse {x} éteint|laisse {x} tranquille|{x} reste ouvert|pas {x}|n'ouvre pas {x}|ne touche pas à {x}|surtout n'ouvre pas {x}|je ne veux pas que tu éteignes {x}|ne ferme jamais {x}|il ne faut pas ouvrir {x}", "reported": "j'ai déjà éteint {x}|Léa a laissé {x} allumé hier|quelqu'un a ouvert {x}|hier {x} était allumé toute la journée|il m'a dit d'éteindre {x}|{x} était ouvert quand je suis arrivé", "question": "dois-je éteindre {x}|peut-on ouvrir {x}|pourquoi {x} est toujours allumé|combien consomme {x}|qui a allumé {x}|que se passe-t-il si j'ouvre {x}|est-ce prudent de laisser {x} allumé", "condition": "s'il pleut, ferme {x}|si quelqu'un arrive, allume {x}|dès qu'il fait nuit, allume {x}|éteins {x} quand je pars|on pourrait éteindre {x}, mais il est tard",
        "retracted": "allume {x}, ah non, laisse|éteins {x}, non attends|ouvre {x}, oublie|éteins {x}, finalement non", "talk": "{x} est tout neuf|j'aime bien {x}|{x} a coûté cher|hier on était {in}|le repas était délicieux|je n'ai pas envie aujourd'hui|ma sœur arrive demain|tu as vu le film|c'est n'importe quoi|je dois encore faire les courses|comment s'est passée ta journée|je vais me coucher|il faut sortir le chien|les enfants jouent {in}|cet été on part en Italie|passe-moi le sel|viens ici|fais tes devoirs|mets tes chaussures|arrête de pleurer|il a fermé la porte derrière lui|fais attention|papa, viens voir|on mange quoi ce soir",
    },
    "polite": "s'il te plaît {c}|{c} s'il te plaît|{c}, merci|hé, {c}|ok, {c}|bon, {c}|maintenant {c}|{c} s'il vous plaît|j'ai froid, {c}|je vais me coucher, {c}|il fait noir, {c}|{c}, je ne vois rien|{c}, sois gentil|ordinateur, {c}|Shoal, {c}", "and": " et | et puis |, | et aussi |. ",
    "spelled": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf vingt".split(),
}
ES = {
    "areas": "cocina;salón=sala de estar;dormitorio=habitación;baño=cuarto de baño;pasillo=recibidor;despacho=oficina;garaje;jardín;sótano;desván=ático;cuarto de los niños;comedor;habitación de invitados;terraza;balcón;lavadero;entrada;escalera;despensa;taller;invernadero;aseo;habitación de Ana;piscina;cobertizo;nave;laboratorio;almacén",
    "floors": [["planta baja=abajo", "primera planta=arriba,primer piso", "sótano"], ["planta baja", "primer piso", "segundo piso"]],
    "things": _names("""light:lámpara de techo;lámpara de pie;lámpara de mesa,flexo;lamparita;luz de lectura;guirnalda;focos;araña;aplique;luz exterior;tira led;colgante;luz de noche
switch:enchufe;enchufe del café;impresora;router;árbol de Navidad;fuente;manta eléctrica;plancha;cargador;acuario
fan:ventilador de techo;ventilador;campana,extractor
blind:estor;persiana veneciana;estor izquierdo
curtain:cortina;cortina izquierda;visillo
shutter:persiana;persiana derecha
awning:toldo
door:puerta principal,puerta de entrada;puerta trasera;puerta del balcón;puerta del sótano
garage:puerta del garaje
gate:portón;cancela
window:claraboya;ventana de la cocina;ventana del despacho
lock:cerradura;caja fuerte;buzón
climate:termostato;aire acondicionado,aire;bomba de calor
heating:calefacción,radiador;horno;suelo radiante;caldera;chimenea;hervidor;sauna;barbacoa
cooling:nevera,frigorífico;congelador;vinoteca
media:tele,televisión,televisor;radio;equipo de música;altavoz;proyector
vacuum:aspiradora,robot aspirador;mopa;Rosita
mower:cortacésped
appliance:lavavajillas;lavadora;secadora;cafetera;microondas
pump:bomba de la piscina;bomba de agua;bomba 3
machine:fresadora;torno;compresor;mezcladora;prensa 2;cinta transportadora
siren:alarma
sensor:temperatura exterior;termómetro;humedad"""),
    "class": {"light": "las luces|la luz|las lámparas|la iluminación", "blind": "los estores", "curtain": "las cortinas", "shutter": "las persianas", "fan": "los ventiladores", "heating": "la calefacción|los radiadores", "window": "las ventanas", "door": "las puertas", "media": "la música|los altavoces", "switch": "los enchufes"},
    "the": "el |la |los |las |mi |", "in": "en el |en la |del |de la |en ", "here": "aquí|en esta habitación|en el cuarto", "everywhere": "en toda la casa|por todas partes|en todas las habitaciones",
    "q": {"brightness": "brillo|intensidad", "temperature": "temperatura", "volume": "volumen", "position": "posición", "speed": "velocidad", "pressure": "presión", "humidity": "humedad", "power": "potencia"},
    "unit": {"brightness": " por ciento| %|%|", "position": " por ciento|%| %", "volume": " por ciento|%||", "temperature": " grados|°|", "speed": " por ciento|%| revoluciones", "pressure": " bares| bar", "humidity": " por ciento|%", "power": " por ciento|%| vatios"},
    "colors": "rojo|azul|verde|amarillo|morado|naranja|rosa|blanco|turquesa|blanco cálido|blanco frío", "items": "leche|huevos|pan|mantequilla|café|té|manzanas|plátanos|arroz|pasta|aceite de oliva|papel higiénico|pilas|comida para el gato|queso|tomates|cebollas|patatas|harina|azúcar|dos litros de leche|tornillos", "lists": "lista de la compra|lista|lista de tareas",
    "tasks": "sacar la basura|regar las plantas|llamar a mamá|pagar el alquiler|dar de comer al gato|tomar la medicina|cerrar la ventana|apagar el horno|llamar al dentista", "messages": "la comida está lista|llegaré tarde|salimos ahora|bajad por favor|ha llegado el paquete", "music": "jazz|música clásica|los Beatles|Radio 3|algo tranquilo|mis canciones favoritas|rock|Mozart|un audiolibro", "timers": "pizza|pasta|huevos|té|pastel|colada",
    "duration": lambda r: r.choice(("media hora|una hora|un cuarto de hora|un minuto|hora y media|tres cuartos de hora".split("|"))) if r.random() < 0.2 else f"{r.choice((5, 10, 15, 20, 30, 45, r.randint(2, 59)))} " + r.choice(("minutos", "minutos", "minutos", "segundos", "horas")),
    "clock": lambda r: r.choice((f"las {r.randint(2, 12)}", f"las {r.randint(2, 12)} y media", f"las {r.randint(2, 12)} y cuarto", f"las {r.randint(6, 23)}:{r.choice(('00', '15', '30', '45'))}", f"las {r.choice('siete ocho nueve diez tres cuatro seis'.split())} de la mañana", f"las {r.choice('siete ocho nueve diez tres cuatro seis'.split())}", f"las {r.randint(2, 11)} de la tarde", "mañana a las ocho", "la una")),
    "states": {"is_on": "encendido|encendida|encendidas", "is_off": "apagado|apagada|apagadas", "is_open": "abierto|abierta|abiertas", "is_closed": "cerrado|cerrada|cerradas", "is_locked": "bloqueada|cerrada con llave|con el cerrojo echado", "is_unlocked": "desbloqueada|sin cerrojo", "is_running": "en marcha|funcionando"},
    "T": {
        "on": "enciende {x}|prende {x}|activa {x}|pon {x}|conecta {x}|{x} encendido|puedes encender {x}|encender {x}|quiero {x} encendido|encienda {x}", "off": "apaga {x}|desactiva {x}|desconecta {x}|quita {x}|{x} apagado|puedes apagar {x}|apagar {x}|corta {x}|apague {x}",
        "open": "abre {x}|abrir {x}|sube {x}|levanta {x}|puedes abrir {x}", "close": "cierra {x}|cerrar {x}|baja {x}|puedes cerrar {x}", "lock": "bloquea {x}|cierra {x} con llave|echa el cerrojo de {x}|bloquear {x}", "unlock": "desbloquea {x}|abre el cerrojo de {x}|desbloquear {x}",
        "start": "arranca {x}|inicia {x}|pon en marcha {x}|haz funcionar {x}|iniciar {x}", "stop": "detén {x}|para {x}|detener {x}|frena {x}", "dock": "manda {x} a su base|{x} a la base|que {x} vuelva a cargarse",
        "set": "pon {x} a {v}|ajusta {x} a {v}|sube {x} a {v}|baja {x} a {v}|{x} a {v}|pon {x} al {v}|coloca {x} a {v}", "set_q": "pon la {q} de {x} a {v}|ajusta la {q} de {x} a {v}|{q} de {x} a {v}|cambia la {q} de {x} a {v}|sube la {q} de {x} a {v}|baja la {q} de {x} a {v}",
        "color": "pon {x} en {v}|cambia {x} a {v}|pon {x} de color {v}|{x} en {v}|quiero {x} en {v}", "up_q": "sube la {q} de {x}|aumenta la {q} de {x}|más {q} en {x}", "down_q": "baja la {q} de {x}|reduce la {q} de {x}|menos {q} en {x}",
        "brighter": "más luz|más brillo|sube la luz|está muy oscuro", "darker": "menos luz|baja la luz|atenúa la luz|hay demasiada luz", "warmer": "más calor|tengo frío|hace demasiado frío|sube la calefacción", "cooler": "menos calor|más fresco|tengo calor|hace demasiado calor|baja la calefacción", "louder": "más alto|sube el volumen|más fuerte", "quieter": "más bajo|baja el volumen|está muy alto",
        "pause": "pausa|pausa la música|pon en pausa", "resume": "sigue|continúa la música|reanuda la reproducción", "next": "siguiente canción|siguiente pista|pasa a la siguiente", "previous": "canción anterior|pista anterior|vuelve a la anterior", "mute": "silencia|quita el sonido|sin sonido", "unmute": "activa el sonido|devuelve el sonido|quita el silencio", "play": "pon {w}|reproduce {w}|quiero escuchar {w}|toca {w}",
        "timer": "pon un temporizador de {d}|temporizador de {d}|inicia un temporizador de {d}|cuenta {d}|pon una cuenta atrás de {d}", "timer_cancel": "cancela el temporizador|para el temporizador|borra el temporizador", "timer_ask": "cuánto tiempo queda en el temporizador|cuánto queda|cuánto falta", "alarm": "despiértame a {t}|pon una alarma a {t}|pon el despertador a {t}|alarma a {t}", "alarm_cancel": "cancela la alarma del despertador|quita el despertador|borra el despertador", "remind": "recuérdame {w} a {t}|recuérdame a {t} {w}|recuérdame {w}",
        "add": "añade {i} a la {l}|pon {i} en la {l}|{i} en la {l}|necesitamos {i}|apunta {i}|compra {i}", "remove": "quita {i} de la {l}|borra {i} de la {l}|elimina {i} de la {l}|tacha {i} de la {l}|marca {i} como hecho en la {l}|{i} ya está, quítalo de la {l}", "list": "qué hay en la {l}|léeme la {l}|enséñame la {l}", "call": "llama a {p}|telefonea a {p}|llamar a {p}", "announce": "anuncia que {w}|di a todos que {w}|difunde {w}",
        "is": "está {x} {st}|¿está {x} {st}?|sigue {x} {st}|comprueba si {x} está {st}|he dejado {x} {st}", "temp": "qué temperatura hace {in}|cuántos grados hay {in}|cuál es la temperatura {in}|temperatura {in}", "which": "qué {c} están {st}|qué está {st} {in}|hay {c} {st} {in}",
        "yes": "sí|sí por favor|vale|de acuerdo|claro|exacto|adelante", "no": "no|no gracias|mejor no|déjalo", "cancel": "olvídalo|cancela|da igual|no importa", "greet": "hola|buenos días|buenas tardes", "bye": "adiós|buenas noches|hasta luego", "thanks": "gracias|muchas gracias|genial, gracias", "weather": "qué tiempo hace|va a llover mañana|necesito paraguas|el tiempo de mañana", "time": "qué hora es|dime la hora", "date": "qué día es hoy|cuál es la fecha", "joke": "cuéntame un chiste", "help": "qué sabes hacer|qué puedo decir", "knowledge": "quién fue Cervantes|cuál es la capital de Francia|cuánto mide la torre Eiffel",
        "negated": "no enciendas {x}|no apagues {x}|deja {x} encendido|deja {x} apagado|deja {x} en paz|{x} se queda abierto|{x} no|no abras {x}|no toques {x}|sobre todo no abras {x}|no quiero que apagues {x}|nunca cierres {x}|no hace falta encender {x}", "reported": "ya he apagado {x}|Ana dejó {x} encendido ayer|alguien abrió {x}|ayer {x} estuvo encendido todo el día|me dijo que apagara {x}|{x} estaba abierto cuando llegué", "question": "debo apagar {x}|se puede abrir {x}|por qué está siempre encendido {x}|cuánto gasta {x}|quién encendió {x}|qué pasa si abro {x}|es seguro dejar {x} encendido", "condition": "si llueve, cierra {x}|si viene alguien, enciende {x}|cuando oscurezca, enciende {x}|apaga {x} cuando me vaya|podríamos apagar {x}, pero es tarde",
        "retracted": "enciende {x}, ay no, déjalo|apaga {x}, no espera|abre {x}, olvídalo|apaga {x}, mejor no", "talk": "{x} es nuevo|me gusta {x}|{x} fue caro|ayer estuvimos {in}|la comida estaba rica|hoy no tengo ganas|mañana viene mi hermana|has visto la película|eso es una tontería|todavía tengo que comprar|qué tal el día|me voy a la cama|hay que sacar al perro|los niños juegan {in}|en verano vamos a Italia|pásame la sal|ven aquí|haz los deberes|ponte los zapatos|deja de llorar|cerró la puerta tras de sí|ten cuidado|papá, ven|qué cenamos hoy",
    },
    "polite": "por favor {c}|{c} por favor|{c}, gracias|oye, {c}|vale, {c}|bueno, {c}|ahora {c}|{c} ya|tengo frío, {c}|me voy a la cama, {c}|está oscuro, {c}|{c}, no veo nada|{c}, sé bueno|ordenador, {c}|Shoal, {c}", "and": " y | y luego |, | y también |. ",
    "spelled": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte".split(),
}
DE["all"], DE["all_house"] = r"\b(alle|allen|sämtliche|jede|jedes|jeden)\b", r"überall|ganzen (haus|wohnung)|allen räumen"
FR["all"], FR["all_house"] = r"\b(tous|toutes|chaque)\b", r"partout|toute la maison|toutes les pièces"
ES["all"], ES["all_house"] = r"\b(todos|todas|cada)\b", r"toda la casa|todas partes|todas las habitaciones"
DE["list_names"], FR["list_names"], ES["list_names"] = "Haushalt|Baumarkt|Urlaub|Geschenke|Arbeit|Garten|Drogerie", "ménage|bricolage|vacances|cadeaux|travail|jardin|pharmacie", "casa|ferretería|vacaciones|regalos|trabajo|jardín|farmacia"
DE["pause_one"], DE["resume_one"] = "halte den Timer an|pausiere den Timer|Timer pausieren|stopp den Timer kurz", "lass den Timer weiterlaufen|setze den Timer fort|Timer fortsetzen|Timer weiter"
FR["pause_one"], FR["resume_one"] = "mets le minuteur en pause|suspends le minuteur|minuteur en pause", "reprends le minuteur|relance le minuteur|continue le minuteur"
ES["pause_one"], ES["resume_one"] = "pausa el temporizador|pon el temporizador en pausa|detén un momento el temporizador", "reanuda el temporizador|continúa el temporizador|sigue con el temporizador"
# Words for what covers a window or closes an opening, the first that fits.
DE["covers"] = (("rolll?[aä]den", "shutter"), ("rollo|jalousie|raffstore", "blind"), ("vorh[aä]ng|gardine", "curtain"), ("markise", "awning"), ("garagent", "garage"), ("fenster", "window"), ("tür", "door"), (r"\btore?\b|gartentor|einfahrt", "gate"), ("abdeckung|beschattung|verdunk|sonnenschutz|verschattung", "cover"))
FR["covers"] = (("volet", "shutter"), ("store banne|auvent", "awning"), ("store", "blind"), ("rideau|voilage", "curtain"), ("garage", "garage"), ("fenêtre|vélux", "window"), ("porte\\b|portes\\b", "door"), ("portail|barrière", "gate"), ("protection|occultation", "cover"))
ES["covers"] = (("persiana", "shutter"), ("estor", "blind"), ("cortina", "curtain"), ("toldo", "awning"), ("garaje", "garage"), ("ventana", "window"), ("puerta", "door"), ("portón|verja|cancela", "gate"), ("cubierta|protección", "cover"))
# What follows or precedes a name: several of a kind in one room. Whether the room's name goes in front of the thing's in one word.
DE["sides"], FR["sides"], ES["sides"] = "links|rechts|vorn|hinten|mitte|1|2|Nord|Süd", "gauche|droit|avant|arrière|du milieu|1|2|nord|sud", "izquierdo|derecho|delantero|trasero|central|1|2|norte|sur"
DE["of"], FR["of"], ES["of"] = None, "du |de la |de l'", "del |de la |de "
# Other forms of the same order: "mach" and "macht".
DE["forms"] = (("mach", "mache|macht|mach mir|mach mal"), ("schalte", "schaltet|schalten Sie|schalt"), ("stell", "stelle|stellt|stellen Sie"), ("stelle", "stellt|stell"), ("öffne", "öffnet|öffnen Sie"), ("schließe", "schließt|schließen Sie"), ("fahr", "fahre|fahrt"), ("dreh", "drehe|dreht"), ("zieh", "ziehe|zieht"), ("lass", "lasse|lasst"), ("setz", "setze|setzt"), ("starte", "startet|start"), ("auf$", "rauf|hoch"), ("zu$", "runter"))
FR["forms"] = (("allume", "allumez|allumer"), ("éteins", "éteignez|éteindre"), ("ouvre", "ouvrez|ouvrir"), ("ferme", "fermez|fermer"), ("mets", "mettez|mettre"), ("règle", "réglez|régler"), ("arrête", "arrêtez|arrêter"), ("baisse", "baissez|baisser"), ("monte", "montez|monter"), ("active", "activez"), ("lance", "lancez"))
ES["forms"] = (("enciende", "encienda|encender|prende"), ("apaga", "apague|apagar"), ("abre", "abra|abrir"), ("cierra", "cierre|cerrar"), ("pon", "ponga|poner|ajusta|establece|configura"), ("sube", "suba|subir"), ("baja", "baje|bajar"), ("para", "pare|parar|detén"), ("activa", "active|activar"), ("inicia", "inicie|iniciar"))
# An amount in words: of a light, a loudspeaker, a blind.
DE["most"] = "maximale {q}|höchste {q}|die höchste {q}|volle {q}|Maximum|maximal|die höchste Stufe|höchste Stufe|das Maximum|die niedrigste Stufe|niedrigste {q}|minimale {q}|Minimum|minimal|die Hälfte|halbe {q}"
FR["most"] = "maximum|au maximum|à fond|{q} maximale|pleine {q}|minimum|{q} minimale|la moitié|mi-hauteur|le plus bas|le plus haut"
ES["most"] = "máximo|al máximo|{q} máximo|{q} máxima|tope|mínimo|al mínimo|{q} mínimo|lo más alto|lo más bajo|la mitad"
TONGUES = {"de": DE, "fr": FR, "es": ES}
SCENES = {"de": "Filmabend;Gute Nacht;Guten Morgen;Abendessen;Party;Entspannen;Lesen", "fr": "soirée film;bonne nuit;bonjour;dîner;fête;détente;lecture", "es": "noche de cine;buenas noches;buenos días;cena;fiesta;relax;lectura"}


def _area(text):
    name, _, more = text.partition("=")
    return name.lower(), [x.strip().lower() for x in more.split(",") if x]


def _with_room(r, t, name, area):
    """The name with its room in it: "Küchenlampe", "lampe du salon"."""
    room = " ".join(area.words[0])
    if t["of"]:
        return name + " " + r.choice(t["of"].split("|")) + room
    return room + r.choice(("", "", " ")) + name.lower()


def make(r, t, lang):
    """A home whose things have names in this language."""
    s = sites.make(r)  # its people stay
    s.areas, s.floors, s.things = [], [], []
    if r.random() < 0.4:
        s.floors = [Floor(*_area(x)) for x in r.choice(t["floors"])]
    for x in r.sample(t["areas"].split(";"), r.randint(3, 9)):
        name, more = _area(x)
        s.areas.append(Area(name, more if r.random() < 0.6 else (), r.choice(s.floors) if s.floors else None))
    for _ in range(r.randint(6, 22)):
        kind = r.choice(list(t["things"]))
        names = r.choice(t["things"][kind])
        q = {"sensor": ["temperature"], "machine": r.choice((["speed"], ["pressure"], ["temperature"], [])), "pump": ["speed"]}.get(kind, [])
        if kind == "sensor" and "umi" in names[0] or "feucht" in names[0]:
            q = ["humidity"]
        area = r.choice(s.areas) if r.random() < 0.75 else None
        x = r.random()
        if x < 0.2 and area is not None:
            names = [_with_room(r, t, n, area) for n in names]
        elif x < 0.35:
            names = [n + " " + r.choice(t["sides"].split("|")) for n in names]
        if any(x.name == names[0].lower() for x in s.things):
            continue
        s.things.append(Thing(kind, names[0].lower(), [n.lower() for n in names[1:]] if r.random() < 0.6 else (), area, q))
    s.scenes = [Thing("scene", x.lower()) for x in r.sample(SCENES[lang].split(";"), r.randint(0, 3))]
    return s


class Speaker:
    """Draws clauses in one language over one site."""

    def __init__(self, g, t):
        self.g, self.r, self.t = g, g.r, t

    def pick(self, key):
        return self.r.choice(self.t[key].split("|"))

    def number(self, lo, hi):
        n = self.r.randint(lo, hi)
        return self.t["spelled"][n] if n <= 20 and self.r.random() < 0.3 else str(n)

    def value(self, q):
        if q in ("brightness", "volume", "position") and self.r.random() < 0.15:
            k = self.g.key("v")
            return k, [(self.pick("most").replace("{q}", self.r.choice(self.t["q"][q].split("|"))), k)]
        lo, hi = {"temperature": (15, 26), "pressure": (1, 6)}.get(q, (0, 100))
        k = self.g.key("v")
        return k, [(self.number(lo, hi) + self.r.choice(self.t["unit"][q].split("|")), k)]

    def say(self, x, area=0.2):
        the = self.pick("the") if x.kind != "person" else ""
        w = the + " ".join(self.r.choice(x.words))
        if x.area is not None and self.r.random() < area:
            w += " " + self.pick("in") + " ".join(x.area.words[0])
        return w

    def place(self):
        r, s = self.r, self.g.site
        x = r.random()
        if x < 0.12:
            return ["here"], self.pick("here")
        if x < 0.24:
            return ["everywhere"], self.pick("everywhere")
        if x < 0.36 and s.floors:
            f = r.choice(s.floors)
            w = " ".join(r.choice(f.words))
            return [f], w if w in ("oben", "unten", "arriba", "abajo") or w.startswith("en ") else self.pick("in") + w
        a = r.choice(s.areas)
        return [a], self.pick("in") + " ".join(r.choice(a.words))

    def target(self, kinds, classes):
        """(symbols, text)"""
        r = self.r
        if classes and r.random() < 0.45:
            c = r.choice(classes)
            w = r.choice(self.t["class"][c].split("|"))
            if r.random() < 0.3:
                return [c], w
            sym, in_ = self.place()
            return [c] + sym, in_ + " " + w if r.random() < 0.3 else w + " " + in_
        x = self.g.thing(kinds)
        return [x], self.say(x)

    def phrase(self, key, **slots):
        def fill(s):
            v = slots[s]
            return v if isinstance(v, list) else [(v, None)]
        template = r_template(self.r, self.t["T"][key])
        for word, others in self.t["forms"]:
            if self.r.random() < 0.3:
                template = re.sub(r"(^| )" + word + (r"(?= |$)" if word[-1] != "$" else ""), lambda m: m[1] + self.r.choice(others.split("|")), template)
        return expand(template, self.r, fill, {})

    def simple(self):
        r, g = self.r, self.g
        f = r.choices((self.power, self.opening, self.locking, self.setting, self.step, self.media, self.timing, self.lists, self.asking, self.chat), (8, 4, 2, 6, 4, 3, 4, 2, 4, 3))[0]
        return f()

    def power(self):
        v = self.r.choice(("on", "off"))
        if self.r.random() < 0.2:
            x = self.g.thing(["vacuum", "mower", "appliance", "pump", "machine"])
            v = self.r.choice(("start", "stop") + (("dock",) if x.kind in ("vacuum", "mower") else ()))
            return Clause(self.phrase(v, x=self.say(x)), [v, x])
        sym, w = self.target(POWER, ["light", "light", "light", "fan", "heating", "switch", "media"])
        return Clause(self.phrase(v, x=w), [v] + sym)

    def opening(self):
        v = self.r.choice(("open", "close"))
        sym, w = self.target(OPENS, ["blind", "curtain", "shutter", "window", "door"])
        return Clause(self.phrase(v, x=w), [v] + sym)

    def locking(self):
        v = self.r.choice(("lock", "unlock"))
        sym, w = self.target(["lock", "door", "gate"], ["door"])
        return Clause(self.phrase(v, x=w), [v] + sym)

    def setting(self):
        r = self.r
        if r.random() < 0.3:
            sym, w = self.target(["light"], ["light"])
            k = self.g.key("v")
            return Clause(self.phrase("color", x=w, v=[(self.pick("colors"), k)]), ["set"] + sym + ["color", "to_value", Span(k)])
        if r.random() < 0.3:
            c, q = r.choice((("light", "brightness"), ("heating", "temperature"), ("blind", "position"), ("shutter", "position"), ("media", "volume")))
            sym, w = self.target([c], [c])
            k, v = self.value(q)
            return Clause(self.phrase("set", x=w, v=v), ["set"] + sym + [q, "to_value", Span(k)])
        x = self.g.thing(None, lambda x: x.kind != "sensor" and [q for q in x.settable() if q in self.t["unit"]])
        q = r.choice([q for q in x.settable() if q in self.t["unit"]])
        k, v = self.value(q)
        if r.random() < 0.6:
            return Clause(self.phrase("set_q", x=self.say(x), v=v, q=r.choice(self.t["q"][q].split("|"))), ["set", x, q, "to_value", Span(k)])
        if len(x.settable()) > 1:
            raise NoFit
        return Clause(self.phrase("set", x=self.say(x), v=v), ["set", x, q, "to_value", Span(k)])

    def step(self):
        r = self.r
        if r.random() < 0.6:
            key, plan = r.choice((("brighter", ["up", "light", "brightness"]), ("darker", ["down", "light", "brightness"]), ("warmer", ["up", "climate", "temperature"]), ("cooler", ["down", "climate", "temperature"]), ("louder", ["up", "media", "volume"]), ("quieter", ["down", "media", "volume"])))
            parts = self.phrase(key)
            if r.random() < 0.3:
                sym, in_ = self.place()
                return Clause(parts + [(" " + in_, None)], plan[:2] + sym + plan[2:])
            return Clause(parts, plan)
        x = self.g.thing(None, lambda x: x.kind != "sensor" and [q for q in x.settable() if q in self.t["q"]])
        q = r.choice([q for q in x.settable() if q in self.t["q"]])
        d = r.choice(("up", "down"))
        return Clause(self.phrase(d + "_q", x=self.say(x), q=r.choice(self.t["q"][q].split("|"))), [d, x, q])

    def media(self):
        v = self.r.choice(("pause", "resume", "next", "previous", "mute", "unmute", "play", "play"))
        if v != "play":
            return Clause(self.phrase(v), [v])
        k = self.g.key("what")
        return Clause(self.phrase("play", w=[(self.pick("music"), k)]), ["play", "what", Span(k)])

    def timing(self):
        r, k, kw = self.r, self.g.key("d"), self.g.key("w")
        if r.random() < 0.12:
            key = r.choice(("pause_one", "resume_one"))
            return Clause([(r.choice(self.t[key].split("|")), None)], ["timer", key])
        key = r.choice(("timer", "timer", "timer_cancel", "timer_ask", "alarm", "alarm", "alarm_cancel", "remind", "remind"))
        if key == "timer":
            return Clause(self.phrase(key, d=[(self.t["duration"](r), k)]), ["timer", "set_one", "dur", Span(k)])
        if key == "alarm":
            return Clause(self.phrase(key, t=[(self.t["clock"](r), k)]), ["alarm", "set_one", "at", Span(k)])
        if key == "remind":
            parts = self.phrase(key, t=[(self.t["clock"](r), k)], w=[(self.pick("tasks"), kw)])
            return Clause(parts, ["remind", "set_one", "what", Span(kw)] + (["at", Span(k)] if any(t == k for _, t in parts) else []))
        return Clause(self.phrase(key), {"timer_cancel": ["timer", "cancel_one"], "timer_ask": ["timer", "ask_one"], "alarm_cancel": ["alarm", "cancel_one"]}[key])

    def lists(self):
        r = self.r
        key = r.choice(("add", "add", "remove", "list"))
        k = self.g.key("i")
        first = self.t["lists"].split("|")[0]
        if key != "list" and r.random() < 0.3:
            kl = self.g.key("l")
            name = [(self.t["lists"].split("|")[1] + " ", None), (self.pick("list_names"), kl)]
            parts = self.phrase(key, i=[(self.pick("items"), k)], l=name)
            return Clause(parts, [key, "item", Span(k)] + (["list", Span(kl)] if any(t == kl for _, t in parts) else []))
        parts = self.phrase(key, i=[(self.pick("items"), k)], l=first)
        return Clause(parts, ["ask", "list"] if key == "list" else [key, "item", Span(k)])

    def asking(self):
        r = self.r
        x = r.random()
        if x < 0.5:
            t = self.g.thing(None, lambda t: t.kind != "sensor")
            st = r.choice(("is_open", "is_closed") if t.kind in OPENS else ("is_locked", "is_unlocked") if t.kind in LOCKS else ("is_on", "is_off", "is_running") if t.kind in RUNS else ("is_on", "is_off"))
            return Clause(self.phrase("is", x=self.say(t), st=r.choice(self.t["states"][st].split("|"))), ["ask", t, st])
        if x < 0.75:
            sym, in_ = self.place()
            return Clause(self.phrase("temp", **{"in": in_}), ["ask"] + sym + ["temperature"])
        c = r.choice(("light", "window", "door", "shutter"))
        st = r.choice(("is_on", "is_off") if c == "light" else ("is_open", "is_closed"))
        sym, in_ = self.place()
        parts = self.phrase("which", c=r.choice(self.t["class"][c].split("|")[:1]).split(" ", 1)[-1], st=r.choice(self.t["states"][st].split("|")), **{"in": in_})
        text = "".join(p for p, _ in parts)
        return Clause(parts, ["ask", "which", c if self.t["class"][c].split("|")[0].split(" ", 1)[-1] in text else "everything"] + (sym if in_ in text else []) + [st])

    def chat(self):
        r = self.r
        key = r.choice(("greet", "bye", "thanks", "weather", "time", "date", "joke", "help", "knowledge", "cancel", "call", "announce"))
        if key == "call":
            if not self.g.site.people:
                raise NoFit
            p = r.choice(self.g.site.people)
            return Clause(self.phrase("call", p=" ".join(p.words[0])), ["call", p])
        if key == "announce":
            k = self.g.key("w")
            return Clause(self.phrase("announce", w=[(self.pick("messages"), k)]), ["announce", "what", Span(k)])
        return Clause(self.phrase(key), ["cancel"] if key == "cancel" else ["chat", key] if key in ("greet", "bye", "thanks") else ["other", key])

    def nothing(self, texts):
        r = self.r
        if texts and r.random() < 0.25:
            w = r.choice(texts).split()
            at = r.randrange(max(1, len(w) - 6))
            return Clause([(" ".join(w[at : at + r.randint(3, 14)]), None)], ["none", "talk"])
        key = r.choice(("negated", "negated", "reported", "question", "condition", "retracted", "talk", "talk", "talk"))
        x = self.g.thing(None, lambda t: t.kind != "sensor")
        return Clause(self.phrase(key, x=self.say(x), **{"in": self.place()[1]}), ["none", key])


_SPLIT = {}


def r_template(r, text):
    pool = _SPLIT.get(text)
    if pool is None:
        pool = _SPLIT[text] = text.split("|")
    return r.choice(pool)


def clause(g, lang, texts):
    """(clause, state)"""
    r, s = g.r, Speaker(g, TONGUES[lang])
    state = {}
    x = r.random()
    if x < 0.25:
        return s.nothing(texts), state
    if x < 0.3:
        word = r.choice(("yes", "no"))
        c = Clause(s.phrase(word), ["answer", word])
        state["pending"] = ["ask_yes"]
        return c, state
    c = s.simple()
    if x < 0.42 and c.plan[0] not in ("chat", "other", "ask", "cancel"):
        d = s.simple()
        if d.plan[0] in ("chat", "other", "ask", "cancel"):
            raise NoFit
        c = Clause(c.parts + [(r.choice(s.t["and"].split("|")), None)] + d.parts, c.plan + ["sep"] + d.plan)
    if r.random() < 0.35 and c.plan[0] != "chat":
        a, _, b = r_template(r, s.t["polite"]).partition("{c}")
        c = Clause([(a, None)] + c.parts + [(b, None)], c.plan)
    return c, state
