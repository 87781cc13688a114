"""Uses a Wyoming server as Home Assistant does; prints one JSON object for each check."""
import asyncio
import json
import sys
import wave

from wyoming.asr import Transcribe, Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.audio import AudioChunk, AudioStart, AudioStop, wav_to_chunks
from wyoming.client import AsyncClient
from wyoming.error import Error
from wyoming.handle import Handled, NotHandled
from wyoming.info import Describe, Info
from wyoming.intent import Intent, NotRecognized, Recognize
from wyoming.ping import Ping, Pong
from wyoming.tts import Synthesize
from wyoming.wake import Detect, Detection, NotDetected


def check(what, ok, got=None):
    print(json.dumps({"what": what, "ok": bool(ok), "got": str(got)}))


async def ask(uri, event, *types):
    """The first event of one of the types."""
    async with AsyncClient.from_uri(uri) as client:
        await client.write_event(event)
        while True:
            got = await client.read_event()
            if got is None or any(t.is_type(got.type) for t in types):
                return got


async def transcribe(client, path, **opts):
    """Every event up to the transcript, and to the end of the stream of pieces."""
    await client.write_event(Transcribe(**opts).event())
    with wave.open(path, "rb") as wav:
        for event in wav_to_chunks(wav, samples_per_chunk=1024, start_event=True, stop_event=True):
            await client.write_event(event.event())
    seen = []
    while True:
        got = await client.read_event()
        if got is None:
            return seen
        seen.append(got)
        if Error.is_type(got.type) or TranscriptStop.is_type(got.type):
            return seen


async def detect(client, path):
    """The first answer to the wake word's question about a sound."""
    await client.write_event(Detect().event())
    with wave.open(path, "rb") as wav:
        for event in wav_to_chunks(wav, samples_per_chunk=1024, start_event=True, stop_event=True):
            await client.write_event(event.event())
    return await client.read_event()


async def main(uri, command, speech, woken):
    info = Info.from_event(await ask(uri, Describe().event(), Info))
    check("asr", info.asr and info.asr[0].models[0].languages == ["en"], info.asr)
    check("handle and intent", info.handle and info.handle[0].supports_home_control and info.intent, info.handle)
    pong = await ask(uri, Ping(text="abc").event(), Pong)
    check("ping", Pong.from_event(pong).text == "abc", pong)
    async with AsyncClient.from_uri(uri) as client:
        seen = await transcribe(client, command, language="en")
        text = [Transcript.from_event(e).text for e in seen if Transcript.is_type(e.type)]
        check("a transcript", text == ["Please turn on the kitchen lights."], seen)
        check("as a stream", TranscriptStart.is_type(seen[0].type) and TranscriptStop.is_type(seen[-1].type), seen)
        pieces = [TranscriptChunk.from_event(e).text for e in seen if TranscriptChunk.is_type(e.type)]
        check("its pieces", "".join(pieces) == text[0], pieces)
        context = [e.data.get("context") for e in seen if Transcript.is_type(e.type)][0]
        check("the confidence", context["confidence"] > 0.8, context)
        seen = await transcribe(client, speech, name="hear", transcript_names=["amiable"])
        text = [Transcript.from_event(e).text for e in seen if Transcript.is_type(e.type)]
        check("another on the same connection", text == ["He might even have been made amiable himself."], seen)
    got = await ask(uri, Transcript(text="turn on the kitchen lights", context={"conversation_id": "c1"}).event(), Handled, NotHandled, Error)
    check("handled", Handled.is_type(got.type) and "kitchen" in got.data["text"] and got.data["context"] == {"conversation_id": "c1"}, got)
    got = await ask(uri, Transcript(text="turn on the kitchen lights", context={"confidence": 0.3}).event(), Handled, NotHandled, Error)
    check("what was hardly heard is not handled", NotHandled.is_type(got.type), got)
    got = await ask(uri, Recognize(text="set the heating to 19 degrees").event(), Intent, NotRecognized, Error)
    entities = {e.name: e.value for e in Intent.from_event(got).entities} if Intent.is_type(got.type) else {}
    check("an intent", got.data.get("name") == "set_temperature" and entities.get("value") == 19, got)
    got = await ask(uri, Recognize(text="so I told him to come by on Tuesday").event(), Intent, NotRecognized, Error)
    check("no intent", NotRecognized.is_type(got.type), got)
    async with AsyncClient.from_uri(uri) as client:  # what it says it hears itself
        await client.write_event(Synthesize(text="The kitchen lights are now off.").event())
        sound, rate = b"", 0
        while True:
            got = await client.read_event()
            if AudioStart.is_type(got.type):
                rate = AudioStart.from_event(got).rate
            elif AudioChunk.is_type(got.type):
                sound += AudioChunk.from_event(got).audio
            else:
                break
        check("a text becomes sound", AudioStop.is_type(got.type) and rate > 8000 and len(sound) > rate, (got, rate, len(sound)))
        await client.write_event(AudioStart(rate=rate, width=2, channels=1).event())
        await client.write_event(AudioChunk(rate=rate, width=2, channels=1, audio=sound).event())
        await client.write_event(AudioStop().event())
        got = await client.read_event()
        while not Transcript.is_type(got.type) and not Error.is_type(got.type):
            got = await client.read_event()
        check("the sound is heard as the text", "lights are now off" in got.data.get("text", "").lower(), got)
    got = await ask(uri, Synthesize(text="").event(), Error, AudioStart)
    check("nothing to say", Error.is_type(got.type), got)
    async with AsyncClient.from_uri(uri) as client:  # nothing but silence
        await client.write_event(AudioStart(rate=48000, width=2, channels=2).event())
        for _ in range(20):
            await client.write_event(AudioChunk(rate=48000, width=2, channels=2, audio=bytes(19200)).event())
        await client.write_event(AudioStop().event())
        got = await client.read_event()
        check("silence", Transcript.is_type(got.type) and Transcript.from_event(got).text == "", got)
    check("a wake word", info.wake and info.wake[0].models[0].phrase == "hey shoal", info.wake)
    async with AsyncClient.from_uri(uri) as client:
        got = await detect(client, woken)
        check("it is said", Detection.is_type(got.type) and Detection.from_event(got).name == "hey shoal", got)
    async with AsyncClient.from_uri(uri) as client:
        check("it is not said", NotDetected.is_type((await detect(client, command)).type), "")
        seen = await transcribe(client, command)
        check("and the same connection hears", any("kitchen lights" in (e.data or {}).get("text", "") for e in seen), seen)
    got = await ask(uri, AudioStart(rate=1, width=2, channels=1).event(), Error)
    check("a rate that nobody has", Error.is_type(got.type) and "samples a second" in got.data["text"], got)


asyncio.run(main(*sys.argv[1:]))
