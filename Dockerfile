# Static binaries in an empty image: nothing to patch, nothing to start but the programs. `concert serve` is
# there as well; whoever wants it names it (`--entrypoint /usr/local/bin/concert`, or the chart).
#
#   docker build -t concert/managed-reconciler .
#
# Where base images cannot be pulled, build the static binaries beforehand, put them into FOLDER/out, and
# let that folder take the place of the first stage:
#
#   buildah bud --build-context build=FOLDER -t concert/managed-reconciler .

FROM docker.io/library/rust:1.95-alpine AS build
RUN apk add --no-cache build-base
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package concert --bins \
 && mkdir /out \
 && cp target/release/concert target/release/managed-reconciler target/release/dynamic-reconciler /out/

FROM scratch
# Certificates of well-known authorities, for providers with TLS and no --cert-dir of their own, can be
# mounted to /etc/ssl/certs.
COPY --from=build /out/ /usr/local/bin/
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["/usr/local/bin/managed-reconciler"]
