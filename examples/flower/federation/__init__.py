"""Ten clients with drawn digits, half of them without labels: ST-LF and FedAvg in one run."""
