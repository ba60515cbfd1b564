"""What exporters take apart, or write in a roundabout way, as the operators that it is."""
