"""The training that ``make bench-overhead`` measures, what it must wait for, and the clients it is compared with."""
