package traffic_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/traffic"
)

// The vectors are those of "Verifying the RSS hash calculation" in Microsoft's
// documentation of network drivers; the destination is listed first there.
func TestRSSHashOfThePublishedVectors(t *testing.T) {
	key := traffic.DefaultRSSKey()
	for _, v := range []struct {
		dst, src         string
		ports, addresses uint32
	}{
		{"161.142.100.80:1766", "66.9.149.187:2794", 0x51ccc178, 0x323e8fc2},
		{"65.69.140.83:4739", "199.92.111.2:14230", 0xc626b0ea, 0xd718262a},
		{"12.22.207.184:38024", "24.19.198.95:12898", 0x5c2b394a, 0xd2d0a5de},
		{"209.142.163.6:2217", "38.27.205.30:48228", 0xafc7327f, 0x82989176},
		{"202.188.127.2:1303", "153.39.163.191:44251", 0x10e828a2, 0x5d1809c5},
	} {
		tuple := traffic.Tuple{Src: netip.MustParseAddrPort(v.src), Dst: netip.MustParseAddrPort(v.dst)}
		if got := key.Hash(tuple); got != v.ports {
			t.Errorf("Hash(%v) = %#x, want %#x", tuple, got, v.ports)
		}
		if got := key.HashAddresses(tuple); got != v.addresses {
			t.Errorf("HashAddresses(%v) = %#x, want %#x", tuple, got, v.addresses)
		}
	}
}

// The hash is linear over GF(2): the hash of a sum is the sum of the hashes.
func TestRSSHashIsLinear(t *testing.T) {
	addrPort := rapid.Custom(func(t *rapid.T) netip.AddrPort {
		a := rapid.Uint32().Draw(t, "address")
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)}), rapid.Uint16().Draw(t, "port"))
	})
	sum := func(a, b netip.AddrPort) netip.AddrPort {
		x, y := a.Addr().As4(), b.Addr().As4()
		for i := range x {
			x[i] ^= y[i]
		}
		return netip.AddrPortFrom(netip.AddrFrom4(x), a.Port()^b.Port())
	}
	rapid.Check(t, func(t *rapid.T) {
		var key traffic.RSSKey
		copy(key[:], rapid.SliceOfN(rapid.Byte(), len(key), len(key)).Draw(t, "key"))
		a := traffic.Tuple{Src: addrPort.Draw(t, "a.src"), Dst: addrPort.Draw(t, "a.dst")}
		b := traffic.Tuple{Src: addrPort.Draw(t, "b.src"), Dst: addrPort.Draw(t, "b.dst")}
		ab := traffic.Tuple{Src: sum(a.Src, b.Src), Dst: sum(a.Dst, b.Dst)}
		if got, want := key.Hash(ab), key.Hash(a)^key.Hash(b); got != want {
			t.Fatalf("hash of the sum is %#x, sum of the hashes %#x", got, want)
		}
	})
}

func TestFlowTuplesDiffer(t *testing.T) {
	first := traffic.FlowTuple(0)
	if got, want := first.Src.String()+" > "+first.Dst.String(), "198.18.0.0:49152 > 198.19.0.1:9"; got != want {
		t.Errorf("the first flow is %s, want %s", got, want)
	}
	seen := map[traffic.Tuple]model.FlowID{}
	see := func(id model.FlowID) {
		tuple := traffic.FlowTuple(id)
		if other, twice := seen[tuple]; twice && other != id {
			t.Fatalf("flows %d and %d are both %v", other, id, tuple)
		}
		seen[tuple] = id
	}
	for id := range model.FlowID(1 << 16) {
		see(id)
		see(id << 15) // where the address repeats
		see(1<<31 - 1 - id)
	}
}
