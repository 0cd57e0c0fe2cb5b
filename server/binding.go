package server

import (
	"crypto"
	_ "crypto/sha256" // for crypto.Hash
	_ "crypto/sha512"
	"crypto/x509"
)

// endPoint returns the channel binding "tls-server-end-point" of a server's
// certificate (RFC 5929, section 4.1): its hash, by the hash function of its
// signature. It returns nil for a signature that has none (Ed25519), or none
// that all versions of libpq find (RSA-PSS).
func endPoint(der []byte) []byte {
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil
	}
	var hash crypto.Hash
	switch certificate.SignatureAlgorithm {
	case x509.MD5WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1, x509.SHA256WithRSA, x509.ECDSAWithSHA256:
		hash = crypto.SHA256 // for the weak ones too, as the RFC says
	case x509.SHA384WithRSA, x509.ECDSAWithSHA384:
		hash = crypto.SHA384
	case x509.SHA512WithRSA, x509.ECDSAWithSHA512:
		hash = crypto.SHA512
	default:
		return nil
	}
	h := hash.New()
	h.Write(der)
	return h.Sum(nil)
}
