package flowstate

// LockClass is the first key of rwproxy's advisory locks: "rwpr" in ASCII.
const LockClass int32 = 0x72777072

// LockKeys returns the keys of the advisory lock that a session holds while it
// refreshes a table: for pg_advisory_lock(int, int) and its kin. The second is
// the OID of the table, as the signed integer those functions take.
func LockKeys(target uint32) (class, object int32) {
	return LockClass, int32(target)
}

// installLock is the second key of the lock that installing holds. No relation
// has OID 0.
const installLock int32 = 0
