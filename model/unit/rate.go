package unit

// A BitRate is a speed in bits per second.
type BitRate int64

// The units of BitRate.
const (
	BitPerSecond BitRate = 1
	Kbps                 = 1000 * BitPerSecond
	Mbps                 = 1000 * Kbps
	Gbps                 = 1000 * Mbps
	Tbps                 = 1000 * Gbps
)

// Grammar returns how a BitRate is written: 10Gbps, 529Mbit/s.
func (BitRate) Grammar() Grammar {
	return Grammar{
		Quantity: "bit rate",
		Quantum:  "1bps",
		Example:  "10Gbps",
		zero:     "bps",
		trap:     "rates count bits, with SI prefixes",
		scales: []scale{
			{symbol: "bps", quanta: uint64(BitPerSecond)},
			{symbol: "bit/s", quanta: uint64(BitPerSecond), alias: true},
			{symbol: "kbps", quanta: uint64(Kbps)},
			{symbol: "kbit/s", quanta: uint64(Kbps), alias: true},
			{symbol: "Mbps", quanta: uint64(Mbps)},
			{symbol: "Mbit/s", quanta: uint64(Mbps), alias: true},
			{symbol: "Gbps", quanta: uint64(Gbps)},
			{symbol: "Gbit/s", quanta: uint64(Gbps), alias: true},
			{symbol: "Tbps", quanta: uint64(Tbps)},
			{symbol: "Tbit/s", quanta: uint64(Tbps), alias: true},
		},
		spellings: map[string]string{
			"bit": "bit/s", "kbit": "kbit/s", "mbit": "Mbit/s", "gbit": "Gbit/s", "tbit": "Tbit/s",
			"b/s": "bit/s", "kb/s": "kbit/s", "mb/s": "Mbit/s", "gb/s": "Gbit/s", "tb/s": "Tbit/s",
			"k": "kbps", "m": "Mbps", "g": "Gbps", "t": "Tbps",
		},
	}
}

// ParseBitRate reads a bit rate such as 2.5Gbps or 529Mbit/s.
func ParseBitRate(text string) (BitRate, error) {
	value, err := BitRate(0).Grammar().parse(text)
	return BitRate(value), err
}

// String returns the bit rate in the largest unit that it reaches.
func (r BitRate) String() string { return r.Grammar().format(int64(r)) }

// MarshalText writes the rate as ParseBitRate reads it; a negative one is an error.
func (r BitRate) MarshalText() ([]byte, error) { return marshal(r.Grammar(), int64(r)) }

// UnmarshalText reads the rate as ParseBitRate does.
func (r *BitRate) UnmarshalText(text []byte) error { return unmarshal(r, ParseBitRate, text) }

// A PacketRate is a number of packets in a thousand seconds, so that rates below one
// packet per second are exact.
type PacketRate int64

// The units of PacketRate.
const (
	PacketPerSecond PacketRate = 1000
	Kpps                       = 1000 * PacketPerSecond
	Mpps                       = 1000 * Kpps
	Gpps                       = 1000 * Mpps
)

// Grammar returns how a PacketRate is written: 1.5Mpps, 0.5pps.
func (PacketRate) Grammar() Grammar {
	return Grammar{
		Quantity: "packet rate",
		Quantum:  "0.001pps",
		Example:  "1.5Mpps",
		zero:     "pps",
		scales: []scale{
			{symbol: "pps", quanta: uint64(PacketPerSecond)},
			{symbol: "kpps", quanta: uint64(Kpps)},
			{symbol: "Mpps", quanta: uint64(Mpps)},
			{symbol: "Gpps", quanta: uint64(Gpps)},
		},
		spellings: map[string]string{
			"p/s": "pps", "pkt/s": "pps", "pkts/s": "pps", "packets/s": "pps",
			"k": "kpps", "m": "Mpps", "g": "Gpps",
		},
	}
}

// ParsePacketRate reads a packet rate such as 1.5Mpps.
func ParsePacketRate(text string) (PacketRate, error) {
	value, err := PacketRate(0).Grammar().parse(text)
	return PacketRate(value), err
}

// String returns the packet rate in the largest unit that it reaches.
func (r PacketRate) String() string { return r.Grammar().format(int64(r)) }

// MarshalText writes the rate as ParsePacketRate reads it; a negative one is an error.
func (r PacketRate) MarshalText() ([]byte, error) { return marshal(r.Grammar(), int64(r)) }

// UnmarshalText reads the rate as ParsePacketRate does.
func (r *PacketRate) UnmarshalText(text []byte) error { return unmarshal(r, ParsePacketRate, text) }
