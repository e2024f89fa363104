package gro

import (
	"errors"
	"fmt"

	"napisim/model"
)

// GSORule says what happens to a packet that is already a superframe when it
// arrives: one from LRO, from hardware GRO or from a virtual machine.
type GSORule uint8

// The rules, by version.
const (
	// GSOBypass lets it pass and leaves its flow alone, even if segments of that
	// flow are held and are overtaken (up to v4.12).
	GSOBypass GSORule = iota
	// GSOFlush lets it pass after its flow was completed (v4.19 to v6.1; later for
	// packets from an untrusted source, SKB_GSO_DODGY).
	GSOFlush
	// GSOMerge merges it as a unit when its segments have the size of the held ones
	// (v6.3 and later, and stable releases of v6.1).
	GSOMerge

	numGSORules
)

// gsoRuleNames are the spellings of the rules.
var gsoRuleNames = [numGSORules]string{GSOBypass: "bypass", GSOFlush: "flush", GSOMerge: "merge"}

// String returns the rule's name.
func (r GSORule) String() string {
	if r < numGSORules {
		return gsoRuleNames[r]
	}
	return fmt.Sprintf("GSORule(%d)", uint8(r))
}

// Limits of a Config. The greatest bucket count is the width of gro_bitmask, the
// greatest size is GRO_MAX_SIZE.
const (
	maxBuckets = 64
	maxSKBs    = 1 << 12
	maxSize    = 8 * 65535
	maxFrags   = 45
)

// Config holds what differs between kernel versions, and the constants that a
// patch might want to change. It does not change once a Table was made from it.
type Config struct {
	// Buckets is GRO_HASH_BUCKETS, a power of two up to 64: 8 since v4.19, 1 for the
	// single list of earlier kernels. Zero is a fault.
	Buckets int
	// MaxSKBs is MAX_GRO_SKBS, the number of skbs held in one bucket: 8 in every
	// version. Zero is a fault.
	MaxSKBs int
	// MaxSize is what IP header, TCP header and payload of a superframe stay below,
	// in bytes: 65536, or less by the device's gro_max_size since v5.17. IPv4 may
	// exceed it since v6.3, by gro_ipv4_max_size up to 524280. Zero is a fault.
	MaxSize int
	// MaxFrags is MAX_SKB_FRAGS: 17, and up to 45 by configuration since v6.4. An
	// skb that finds no room is chained, not flushed. Zero is a fault.
	MaxFrags int
	// HeadTruesize is SKB_TRUESIZE of the head that a driver copies headers into
	// when the payload lies in page fragments, in bytes; it is given back when such
	// an skb is merged. 1280 for a head of 1 KiB. Zero is a fault.
	HeadTruesize int
	// GSO is the rule for packets that arrive as superframes; the zero value is that
	// of kernels up to v4.12.
	GSO GSORule
	// MatchRecycle refuses to merge skbs whose pages go back to different owners, as
	// kernels since v6.3 do (pp_recycle). If false, only skbs that both have pages
	// must agree: the model's skb has one owner, while pages of earlier kernels each
	// knew their own.
	MatchRecycle bool
	// MatchCWR compares the CWR flag like other flags (v6.19). If false, a held skb
	// with CWR still takes segments without it.
	MatchCWR bool
}

// DefaultConfig returns the values of v6.12 with 4 KiB pages.
func DefaultConfig() Config {
	return Config{
		Buckets:      8,
		MaxSKBs:      8,
		MaxSize:      65536,
		MaxFrags:     model.MaxSKBFrags,
		HeadTruesize: 1024 + model.SKBHead,
		GSO:          GSOMerge,
		MatchRecycle: true,
	}
}

// Validate returns every fault of the configuration, or nil.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	inRange := func(name string, v, low, high int) {
		check(low <= v && v <= high, "gro: %s is %d, want %d to %d", name, v, low, high)
	}
	inRange("Buckets", c.Buckets, 1, maxBuckets)
	check(c.Buckets&(c.Buckets-1) == 0, "gro: Buckets is %d, want a power of two", c.Buckets)
	inRange("MaxSKBs", c.MaxSKBs, 1, maxSKBs)
	inRange("MaxSize", c.MaxSize, 1, maxSize)
	inRange("MaxFrags", c.MaxFrags, model.MaxSKBFrags, maxFrags)
	inRange("HeadTruesize", c.HeadTruesize, model.SKBHead+model.SharedInfo, maxSize)
	check(c.GSO < numGSORules, "gro: GSO is %d, want bypass, flush or merge", uint8(c.GSO))
	return errors.Join(faults...)
}
