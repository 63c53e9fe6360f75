# syntax=docker/dockerfile:1
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=1 go build -trimpath -buildvcs=false \
    -tags "netgo osusergo sqlite_omit_load_extension" \
    -ldflags "-s -w -X main.version=${VERSION} -linkmode external -extldflags -static" \
    -o /tidemark ./cmd/tidemark

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /tidemark /usr/bin/tidemark
COPY LICENSE /usr/share/doc/tidemark/LICENSE
USER 65532:65532
ENTRYPOINT ["/usr/bin/tidemark"]
CMD ["replicate", "-config", "/etc/tidemark.yml"]
