# rwproxy in front of a Postgres that RWPROXY_UPSTREAM names.

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /rwproxy ./cmd/rwproxy

FROM debian:12-slim
# psql and pg_isready: for the health check and for a look from inside.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates postgresql-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --no-create-home --shell /usr/sbin/nologin rwproxy
COPY --from=build /rwproxy /usr/local/bin/rwproxy
COPY LICENSE NOTICE /usr/share/doc/rwproxy/
USER rwproxy
ENV RWPROXY_LISTEN=0.0.0.0:6432 \
    RWPROXY_HTTP=0.0.0.0:6433
EXPOSE 6432 6433
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s \
    CMD ["pg_isready", "--quiet", "--host=127.0.0.1", "--port=6432"]
ENTRYPOINT ["rwproxy"]
CMD ["serve"]
