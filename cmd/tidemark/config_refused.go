package main

// refusedKeys are the keys of Litestream v0.5 that mean something Tidemark
// does not do, or does not do yet, with what to do about it.
func refusedKeys() map[string]string {
	refused := map[string]string{
		"mcp-addr":                    "not supported; remove the key",
		"validation":                  "periodic validation is not supported yet; remove the key",
		"l0-retention-check-interval": "files are deleted when they expire, nothing is looked for; remove the key",
		"verify-compaction":           "merged files are always verified; remove the key",
		"heartbeat-url":               "heartbeats are not supported yet; remove the key",
		"heartbeat-interval":          "heartbeats are not supported yet; remove the key",
		"shutdown-sync-timeout":       "use shutdown-timeout",
		"shutdown-sync-interval":      "the last upload is retried with growing pauses; remove the key",
	}
	for key, reason := range refusedDatabaseKeys() {
		refused["dbs."+key] = reason
	}
	for key, reason := range refusedReplicaKeys() {
		refused[key] = reason
		refused["dbs.replica."+key] = reason
		refused["dbs.replicas."+key] = reason
	}
	return refused
}

func refusedDatabaseKeys() map[string]string {
	return map[string]string{
		"levels":                    "it holds for all databases; move it to the top",
		"retention":                 "it holds for all databases, how long is said by snapshot.retention; move it to the top",
		"l0-retention":              "it holds for all databases; move it to the top",
		"meta-path":                 "the state directory is always beside the database; remove the key",
		"meta-dir":                  "the state directory is always beside the database; remove the key",
		"monitor-interval":          "use poll-interval; changes are noticed at once where the file system reports them",
		"checkpoint-interval":       "checkpoints are never forced; remove the key",
		"min-checkpoint-page-count": "checkpoints are never forced; remove the key",
		"truncate-page-n":           "checkpoints are never forced; remove the key",
		"max-sync-wal-bytes":        "memory is bounded without it; remove the key",
		"busy-timeout":              "locks of the database are never waited for long; remove the key",
	}
}

func refusedReplicaKeys() map[string]string {
	refused := map[string]string{
		"validation-interval": "periodic validation is not supported yet; remove the key",
		"max-sync-ltx-files":  "memory is bounded without it; remove the key",
		"auto-recover":        "a broken chain is always mended by difference; remove the key",
		"name":                "replicas have no names; remove the key",
		"skip-verify":         "certificates are always verified; name a bundle in AWS_CA_BUNDLE",
		"age":                 "client-side encryption is not supported; nothing would be encrypted",
		"storage-class":       "storage classes are not supported yet; set a lifecycle rule on the bucket",
	}
	for _, key := range []string{"sse-customer-algorithm", "sse-customer-key", "sse-customer-key-path", "sse-kms-key-id"} {
		refused[key] = "server-side encryption keys are not supported yet; set the encryption of the bucket"
	}
	for _, key := range []string{"sign-payload", "sign-accept-encoding", "require-content-md5", "put-object-content-md5"} {
		refused[key] = "requests are made so that it is not needed; remove the key"
	}
	for _, key := range []string{
		"account-name", "account-key", "sas-token", "host", "user", "password", "key-path", "concurrent-writes", "host-key",
		"webdav-url", "webdav-username", "webdav-password", "jwt", "seed", "creds", "nkey", "username", "token", "tls",
		"root-cas", "client-cert", "client-key", "max-reconnects", "reconnect-wait", "timeout",
	} {
		refused[key] = "only replicas in a directory (type: file) and in S3 (type: s3) are supported"
	}
	return refused
}
