"""T446: each of very many secrets is redacted in its literal spelling, however many spellings the others
have."""

from dragoman.content.redact import SECRET_LIMIT, Redactor

SECRETS = [f"k{number:03}+Qz/4&w'9<Rr>vB==" for number in range(SECRET_LIMIT)]


def test_t446_every_secret_is_redacted_in_its_literal_spelling():
    redact = Redactor(SECRETS)
    redact.learn(f"t{secret}" for secret in SECRETS)
    said = [*SECRETS, *(f"t{secret}" for secret in SECRETS)]
    assert [secret for secret in said if redact.text(f"it is {secret}, so") != "it is [secret], so"] == []
