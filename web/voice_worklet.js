// voice_worklet.js - passes the samples of the microphone on, 20 ms at a time.
registerProcessor('microphone', class extends AudioWorkletProcessor {
    constructor() {
        super();
        this.block = new Float32Array(320);
        this.n = 0;
    }

    process([[samples]]) {
        for (const x of samples ?? []) {
            this.block[this.n++] = x;
            if (this.n === 320) {
                this.port.postMessage(this.block.slice());
                this.n = 0;
            }
        }
        return true;
    }
});
