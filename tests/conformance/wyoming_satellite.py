#!/usr/bin/env python3
"""As Home Assistant does with a satellite: the official library connects to `shoal satellite --listen`, runs its pipeline, takes the sound of
its microphone and has it play a reply.  Prints a line of JSON for each check.

    wyoming_satellite.py URI SAMPLES
"""
import asyncio
import json
import sys

from wyoming.asr import Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncClient
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong
from wyoming.pipeline import PipelineStage, RunPipeline
from wyoming.satellite import PauseSatellite, RunSatellite
from wyoming.snd import Played


def check(what, ok, got):
    print(json.dumps({"what": what, "ok": bool(ok), "got": str(got)[:300]}), flush=True)


async def until(client, kind):
    """Events up to one of this kind, which is the last."""
    events = []
    while not events or not kind.is_type(events[-1].type):
        event = await asyncio.wait_for(client.read_event(), 60)
        if event is None:
            raise ConnectionError(f"closed before {kind}")
        events.append(event)
    return events


async def main(uri, samples):
    async with AsyncClient.from_uri(uri) as client:
        await client.write_event(Describe().event())
        info = Info.from_event((await until(client, Info))[-1])
        check("what it is", info.satellite and info.satellite.name == "kitchen" and info.satellite.area == "Kitchen", info.satellite)
        check("microphone and loudspeaker", len(info.mic) == 1 and len(info.snd) == 1 and info.mic[0].mic_format.rate == 16000, info)
        await client.write_event(Ping(text="x").event())
        check("ping", Pong.from_event((await until(client, Pong))[-1]).text == "x", "")
        await client.write_event(RunSatellite().event())
        run = RunPipeline.from_event((await until(client, RunPipeline))[-1])
        check("it wants a pipeline", run.start_stage == PipelineStage.ASR and run.end_stage == PipelineStage.TTS, run)
        sound = b""
        while len(sound) < samples * 2:
            chunk = AudioChunk.from_event((await until(client, AudioChunk))[-1])
            check_form = (chunk.rate, chunk.width, chunk.channels)
            sound += chunk.audio
        check("its sound", check_form == (16000, 2, 1) and len(sound) == samples * 2, len(sound))
        await client.write_event(Transcript(text="turn on the lights").event())
        await client.write_event(AudioStart(rate=22050, width=2, channels=1).event())
        for _ in range(10):
            await client.write_event(AudioChunk(rate=22050, width=2, channels=1, audio=b"\x10\x20" * 2205).event())
        await client.write_event(AudioStop().event())
        check("the reply was played", (await until(client, Played))[-1].type == "played", "")
        await client.write_event(PauseSatellite().event())


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
