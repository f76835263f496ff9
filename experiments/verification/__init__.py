"""Random schedules of every template on the hardware, held to float64."""
