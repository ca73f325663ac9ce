"""Images small enough to read: blobs, manifests and indexes with true digests."""

import gzip
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

OCI = "application/vnd.oci.image"
INDEX, MANIFEST = f"{OCI}.index.v1+json", f"{OCI}.manifest.v1+json"
CONFIG, LAYER = f"{OCI}.config.v1+json", f"{OCI}.layer.v1.tar+gzip"
DOCKER = "application/vnd.docker.distribution.manifest"
DOCKER_INDEX, DOCKER_MANIFEST = f"{DOCKER}.list.v2+json", f"{DOCKER}.v2+json"
ATTESTATION = {"vnd.docker.reference.type": "attestation-manifest"}
UNKNOWN = {"os": "unknown", "architecture": "unknown"}


def digest_of(body: bytes) -> str:
    """Return the digest of some bytes."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@dataclass
class Content:
    """Blobs and manifests by digest, and what tags point at."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    media_types: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def add(self, body: bytes, media_type: str, tag: str | None = None) -> dict:
        """Store bytes and return their descriptor."""
        digest = digest_of(body)
        self.blobs[digest] = body
        self.media_types[digest] = media_type
        if tag:
            self.tags[tag] = digest
        return {"mediaType": media_type, "digest": digest, "size": len(body)}

    def add_json(self, tree: dict, media_type: str, tag: str | None = None) -> dict:
        """Store JSON and return its descriptor."""
        return self.add(json.dumps(tree).encode(), media_type, tag)

    def image(
        self,
        architecture: str | None,
        *,
        tag: str | None = None,
        layers: tuple[bytes, ...] = (b"layer",),
        media_type: str = MANIFEST,
        inner: dict | None = None,
        **config: str,
    ) -> dict:
        """Store an image of one platform; ``inner`` is what a container of it gets.

        Layers are stored compressed, as images are pushed: skopeo would else change their digests.
        """
        tree = {"os": "linux", "config": inner or {}, **config}
        tree |= {"rootfs": {"type": "layers", "diff_ids": [digest_of(body) for body in layers]}}
        if architecture:
            tree["architecture"] = architecture
        manifest = {
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": self.add_json(tree, CONFIG),
            "layers": [self.add(gzip.compress(body, mtime=0), LAYER) for body in layers],
        }
        return self.add_json(manifest, media_type, tag)

    def index(self, tag: str, *entries: dict, media_type: str = INDEX) -> dict:
        """Store an index of descriptors."""
        tree = {"schemaVersion": 2, "mediaType": media_type, "manifests": list(entries)}
        return self.add_json(tree, media_type, tag)

    def multi(self, tag: str, *architectures: str) -> dict:
        """Store an index as a current build writes it: images, each with its provenance."""
        images = [entry(self.image(name, layers=(name.encode(),)), name) for name in architectures]
        notes = [
            {**self.image("unknown", os="unknown", layers=(name.encode() + b"-provenance",))}
            | {"platform": UNKNOWN, "annotations": ATTESTATION}
            for name in architectures
        ]
        return self.index(tag, *images, *notes)

    def write_layout(self, folder: Path, tag: str) -> None:
        """Write an OCI image layout with one tag, for skopeo."""
        (folder / "blobs" / "sha256").mkdir(parents=True)
        for digest, body in self.blobs.items():
            (folder / "blobs" / "sha256" / digest.removeprefix("sha256:")).write_bytes(body)
        root = self.tags[tag]
        named = {
            "mediaType": self.media_types[root],
            "digest": root,
            "size": len(self.blobs[root]),
            "annotations": {"org.opencontainers.image.ref.name": tag},
        }
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        (folder / "index.json").write_text(
            json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]})
        )


def entry(descriptor: dict, architecture: str, **platform: str) -> dict:
    """Return a descriptor as an index lists it."""
    return {**descriptor, "platform": {"os": "linux", "architecture": architecture, **platform}}
