"""A Modbus TCP server (pymodbus) with a few values, for modbus.js. Usage: modbus_server.py PORT

Input registers 0-1: 7.5 as a float, 2: -125; holding registers 10-11: 21.5 as a float with its words exchanged; coil 3: on;
discrete input 5: on. Each line of its input "input ADDRESS VALUE" sets a register; "holding ADDRESS" prints one.
"""
import asyncio
import struct
import sys

from pymodbus.datastore import ModbusDeviceContext, ModbusSequentialDataBlock, ModbusServerContext
from pymodbus.server import StartAsyncTcpServer


def words(value, swap=False):
    two = list(struct.unpack(">HH", struct.pack(">f", value)))
    return two[::-1] if swap else two


async def main():
    inputs, holdings, coils, discretes = [0] * 100, [0] * 100, [0] * 100, [0] * 100
    inputs[0:3] = words(7.5) + [-125 & 0xFFFF]
    holdings[10:12] = words(21.5, True)
    coils[3] = discretes[5] = 1
    # blocks count from 1, requests from 0
    blocks = {"ir": inputs, "hr": holdings, "co": coils, "di": discretes}
    device = ModbusDeviceContext(**{k: ModbusSequentialDataBlock(1, v) for k, v in blocks.items()})
    server = asyncio.create_task(StartAsyncTcpServer(ModbusServerContext(devices=device, single=True), address=("127.0.0.1", int(sys.argv[1]))))
    while not server.done():
        line = (await asyncio.to_thread(sys.stdin.readline)).split()
        if not line:
            break
        if line[0] == "input":
            device.setValues(4, int(line[1]), [int(line[2])])
        elif line[0] == "holding":
            print(*device.getValues(3, int(line[1]), 2), flush=True)
    server.cancel()


asyncio.run(main())
