#!/usr/bin/env python3
"""The mean of several trainings of the reader, each with its share: it knows what each of them knows, and forgets less.

    training/reader/soup.py OUT.pt 0.5:FIRST.pt 0.2:SECOND.pt 0.3:THIRD.pt
"""

import sys

import torch


def main():
    parts = [(float(a.split(":", 1)[0]), torch.load(a.split(":", 1)[1], map_location="cpu")) for a in sys.argv[2:]]
    total = sum(w for w, _ in parts)
    torch.save({k: sum(w / total * d[k].float() for w, d in parts).half() for k in parts[0][1]}, sys.argv[1])


if __name__ == "__main__":
    main()
