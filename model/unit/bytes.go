package unit

// Bytes is an amount of data in bytes.
type Bytes int64

// The units of Bytes. SI prefixes are powers of 1000, IEC prefixes powers of 1024.
const (
	Byte Bytes = 1
	KB         = 1000 * Byte
	MB         = 1000 * KB
	GB         = 1000 * MB
	KiB        = 1024 * Byte
	MiB        = 1024 * KiB
	GiB        = 1024 * MiB
)

// Grammar returns how Bytes are written: 1448B, 64KiB.
func (Bytes) Grammar() Grammar {
	return Grammar{
		Quantity: "byte count",
		Quantum:  "1B",
		Example:  "64KiB",
		zero:     "B",
		whole:    true,
		scales: []scale{
			{symbol: "B", quanta: uint64(Byte)},
			{symbol: "kB", quanta: uint64(KB)},
			{symbol: "KiB", quanta: uint64(KiB)},
			{symbol: "MB", quanta: uint64(MB)},
			{symbol: "MiB", quanta: uint64(MiB)},
			{symbol: "GB", quanta: uint64(GB)},
			{symbol: "GiB", quanta: uint64(GiB)},
		},
		// A lone k, M or G stays without a hint: half the tools mean 1000 and half 1024.
		spellings: map[string]string{
			"byte": "B", "bytes": "B", "ki": "KiB", "mi": "MiB", "gi": "GiB",
		},
	}
}

// ParseBytes reads an amount of data such as 1448B, 9kB (9000) or 64KiB (65536).
func ParseBytes(text string) (Bytes, error) {
	value, err := Bytes(0).Grammar().parse(text)
	return Bytes(value), err
}

// String returns the amount in the unit that gives the smallest whole number.
func (b Bytes) String() string { return b.Grammar().format(int64(b)) }

// MarshalText writes the amount as ParseBytes reads it; a negative one is an error.
func (b Bytes) MarshalText() ([]byte, error) { return marshal(b.Grammar(), int64(b)) }

// UnmarshalText reads the amount as ParseBytes does.
func (b *Bytes) UnmarshalText(text []byte) error { return unmarshal(b, ParseBytes, text) }
