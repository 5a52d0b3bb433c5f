"""The method: one file per stage; knows neither git nor SQL nor a terminal."""
