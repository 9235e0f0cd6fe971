# `make image` builds this with docker, podman or buildah.
# The base image can be a mirror, or pinned by digest: --build-arg PYTHON_IMAGE=... `make pin-base` pins it here, and the release
# workflow takes the digest that the tag has at that time.
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
WORKDIR /app
COPY requirements.lock ./
# Only the wheels that the lock names, by hash: nothing is compiled, and no code of a package runs.
RUN python -m pip install --no-cache-dir --disable-pip-version-check --no-compile \
    --require-hashes --only-binary=:all: --target=/app -r requirements.lock && rm -rf /app/bin requirements.lock
COPY .ci/image/slim.py /
RUN python /slim.py /app
COPY LICENSE ./
COPY manifests/examples manifests/examples
COPY webhook webhook
COPY certs certs
# Readable for every uid, with any umask of the checkout. Bytecode without times and with one order of sets: equal
# sources give equal files.
RUN chmod -R u=rwX,go=rX /app && PYTHONHASHSEED=0 python -m compileall -q --invalidation-mode unchecked-hash /app

FROM ${PYTHON_IMAGE}
# Nothing is installed from here on, so pip goes. The base image has no bytecode of the standard library. The root
# filesystem is read-only in a cluster, so every start would compile the library in memory again.
RUN rm -rf "$(python -c 'import pip; print(*pip.__path__)')"* "$(dirname "$(command -v pip)")"/pip* \
    "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')/ensurepip" && \
    PYTHONHASHSEED=0 python -m compileall -q --invalidation-mode unchecked-hash \
    -x '/(test|idlelib|tkinter|ensurepip|lib2to3|pydoc_data|turtledemo|site-packages)/' \
    "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
COPY --from=build /app /app
WORKDIR /app
ENV PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1
# Where the image comes from: the commit, the address of its repository, and the digest of the base.
ARG PYTHON_IMAGE
ARG REVISION=unknown
ARG SOURCE=unknown
ARG BASE_DIGEST=unknown
LABEL org.opencontainers.image.title="kubevirt-coschedule" \
      org.opencontainers.image.description="Starts a KubeVirt VM on the node of its Longhorn share-manager" \
      org.opencontainers.image.version="0.2.0-dev" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.base.name="${PYTHON_IMAGE}" \
      org.opencontainers.image.base.digest="${BASE_DIGEST}"
USER 65532:65532
EXPOSE 9443 8080
# The kubelet checks the health (probes in manifests/): /healthz and /readyz on 8080.
ENTRYPOINT ["python", "-m", "webhook"]
CMD ["serve"]
