"""The parts of screens; none of them reads history by itself."""
