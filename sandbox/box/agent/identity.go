package agent

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"proctor/sandbox"
)

// identity is whom commands run as.
type identity struct {
	uid, gid uint32
	groups   []uint32
	name     string
	home     string
}

// credential is nil for ourselves, which spares the child three system calls, unless the engine gave us a group of
// our own: by it we see all of a /proc that hides us from commands.
func (i identity) credential(ownGroup bool) *syscall.Credential {
	if i.uid == 0 && i.gid == 0 {
		if ownGroup {
			return &syscall.Credential{}
		}
		return nil
	}
	return &syscall.Credential{Uid: i.uid, Gid: i.gid, Groups: i.groups}
}

// hasOwnGroup reports whether this process has a supplementary group but 0.
func hasOwnGroup() bool {
	own, _ := syscall.Getgroups() // none where it cannot be told
	return slices.ContainsFunc(own, func(gid int) bool { return gid != 0 })
}

const (
	passwdFile = "/etc/passwd"
	groupFile  = "/etc/group"
	fileLimit  = 1 << 20 // bytes read of either
)

// resolveUser reads "", "root", a name, or uid[:gid] (names work for both), by the sandbox's own
// files. "" and "root" are always 0, whatever those say.
func resolveUser(spec string) (identity, error) {
	if spec == "" || spec == "root" || spec == "0" {
		return identity{name: "root", home: "/root"}, nil
	}
	user, group, hasGroup := strings.Cut(spec, ":")
	id := identity{name: user, home: "/"}
	entry := find(passwdFile, func(f []string) bool { return len(f) >= 6 && (f[0] == user || f[2] == user) })
	switch uid, err := strconv.ParseUint(user, 10, 31); {
	case entry != nil:
		u, err1 := strconv.ParseUint(entry[2], 10, 31)
		g, err2 := strconv.ParseUint(entry[3], 10, 31)
		if err1 != nil || err2 != nil {
			return identity{}, fmt.Errorf("%w: the entry of user %q in %s is malformed", sandbox.ErrStart, user, passwdFile)
		}
		id = identity{uid: uint32(u), gid: uint32(g), name: entry[0], home: entry[5]}
	case err == nil:
		id.uid = uint32(uid)
	default:
		return identity{}, fmt.Errorf("%w: no user %q in %s", sandbox.ErrStart, user, passwdFile)
	}
	if hasGroup {
		gid, err := resolveGroup(group)
		if err != nil {
			return identity{}, err
		}
		id.gid = gid
	}
	id.groups = supplementary(id.name, id.gid)
	return id, nil
}

func resolveGroup(group string) (uint32, error) {
	if gid, err := strconv.ParseUint(group, 10, 31); err == nil {
		return uint32(gid), nil
	}
	entry := find(groupFile, func(f []string) bool { return len(f) >= 3 && f[0] == group })
	if entry != nil {
		if gid, err := strconv.ParseUint(entry[2], 10, 31); err == nil {
			return uint32(gid), nil
		}
	}
	return 0, fmt.Errorf("%w: no group %q in %s", sandbox.ErrStart, group, groupFile)
}

// supplementary gives gid and the groups that name is a member of.
func supplementary(name string, gid uint32) []uint32 {
	ids := []uint32{gid}
	find(groupFile, func(f []string) bool {
		if len(f) >= 4 && slices.Contains(strings.Split(f[3], ","), name) {
			if id, err := strconv.ParseUint(f[2], 10, 31); err == nil && !slices.Contains(ids, uint32(id)) && len(ids) < 64 {
				ids = append(ids, uint32(id))
			}
		}
		return false
	})
	return ids
}

// find gives the first entry of a colon-separated file that matches; nil where none does.
func find(path string, match func([]string) bool) []string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe put there must not stop us
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	lines := bufio.NewScanner(io.LimitReader(f, fileLimit))
	for lines.Scan() {
		if fields := strings.Split(lines.Text(), ":"); match(fields) {
			return fields
		}
	}
	return nil
}
