package gro

import (
	"fmt"
	"slices"
)

// This file says what kernel versions do, by the names that scenarios give it.

// tables is the table of gro_table behaviours: each is a set of choices that existed
// together.
var tables = []struct {
	name string
	set  func(*Config)
}{
	{"one_list", func(c *Config) { c.Buckets, c.GSO = 1, GSOBypass }},
	{"hash", func(c *Config) { c.Buckets, c.GSO = 8, GSOFlush }},
	{"hash_merge_gso", func(c *Config) { c.Buckets, c.GSO, c.MatchRecycle = 8, GSOMerge, true }},
	{"hash_match_cwr", func(c *Config) {
		c.Buckets, c.GSO, c.MatchRecycle = 8, GSOMerge, true
		c.MatchCWR, c.FixedIDWithoutDF = true, true
	}},
}

// sizes is the table of gro_max_size behaviours: the largest settings of a device for
// IPv6 and IPv4; zero where the kernel has no such setting.
var sizes = []struct {
	name       string
	ipv6, ipv4 int
}{
	{"fixed", 0, 0},
	{"device", legacyMaxSize, 0},
	{"big_tcp_ipv6", maxSize, 0},
	{"big_tcp", maxSize, maxSize},
}

// TableNames lists the values of the gro_table behaviour in the order of the kernel's
// history, as the other lists do.
func TableNames() []string {
	var all []string
	for _, b := range tables {
		all = append(all, b.name)
	}
	return all
}

// SizeNames lists the values of the gro_max_size behaviour.
func SizeNames() []string {
	var all []string
	for _, b := range sizes {
		all = append(all, b.name)
	}
	return all
}

// UDPNames lists the values of the udp_gro behaviour.
func UDPNames() []string { return slices.Clone(udpRuleNames[:]) }

// ForVersion returns the table of a kernel with these values of the behaviours gro_table
// and udp_gro, and with settings at their defaults.
func ForVersion(table, udp string) (Config, error) {
	c := DefaultConfig()
	c.MatchRecycle = false
	i := slices.Index(TableNames(), table)
	if i < 0 {
		return c, fmt.Errorf("gro_table: unknown behaviour %q", table)
	}
	tables[i].set(&c)
	u := slices.Index(udpRuleNames[:], udp)
	if u < 0 {
		return c, fmt.Errorf("udp_gro: unknown behaviour %q", udp)
	}
	c.UDP = UDPRule(u)
	return c, nil
}

// SetSizes applies the settings gro_max_size and gro_ipv4_max_size of a device, in a
// kernel with that value of the behaviour gro_max_size. Zero leaves a setting alone. A
// gro_max_size of at most 65536 is that of IPv4, too; above it is for IPv6 only.
func (c *Config) SetSizes(version string, groMax, groIPv4Max int) error {
	i := slices.Index(SizeNames(), version)
	if i < 0 {
		return fmt.Errorf("gro_max_size: unknown behaviour %q", version)
	}
	for _, s := range []struct {
		name     string
		set, top int
	}{{"gro_max_size", groMax, sizes[i].ipv6}, {"gro_ipv4_max_size", groIPv4Max, sizes[i].ipv4}} {
		switch {
		case s.set == 0:
		case s.top == 0:
			return fmt.Errorf("%s: the kernel has no such setting (behaviour gro_max_size is %s)", s.name, version)
		case s.set > s.top:
			return fmt.Errorf("%s: %d is more than %d, the most that the kernel takes", s.name, s.set, s.top)
		}
	}
	if groMax > 0 {
		c.MaxSizeIPv6, c.MaxSize = groMax, min(groMax, legacyMaxSize)
	}
	if groIPv4Max > 0 {
		c.MaxSize = groIPv4Max
	}
	return nil
}
