# bamtrain and bamdata in an image without sources, headers or compilers: docs/build.md says how to build
# and run it. The first stage compiles, the second one gets the programs and what they need to run.
#
# CUDA, untried: BUILD_BASE=nvidia/cuda:13.0.2-devel-ubuntu24.04 BASE=nvidia/cuda:13.0.2-runtime-ubuntu24.04
ARG BUILD_BASE=debian:13
ARG BASE=debian:13

FROM ${BUILD_BASE} AS build
COPY . /src
RUN /src/scripts/setup.sh python3-pip
RUN BUILD=/build /src/scripts/build.sh -Dtests=false \
  && DESTDIR=/image meson install -C /build --no-rebuild --strip
RUN /src/scripts/runtime_packages.sh /image/usr/local/bin/* >/image/usr/local/share/bamtrain/packages
# What pip installs to read Parquet, without its headers; empty: nothing.
ARG PYARROW=pyarrow
RUN if [ -n "$PYARROW" ]; then \
    pip install --quiet --break-system-packages --root-user-action=ignore --root=/image "$PYARROW" \
    && find /image/usr/local/lib -type f '(' -name '*.h' -o -name '*.hpp' -o -name '*.cc' ')' -delete \
    && echo python3 >>/image/usr/local/share/bamtrain/packages; fi

FROM ${BASE}
COPY --from=build /image /
RUN apt-get update -qq \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    openmpi-bin $(cat /usr/local/share/bamtrain/packages) \
  && rm -rf /var/lib/apt/lists/*
# No user by name: any user id can run the programs and write here (--user). 1000 is the first user of
# most machines, to whom a mounted folder belongs.
WORKDIR /work
RUN chmod 1777 /work
ENV HOME=/tmp
USER 1000:1000
ENTRYPOINT ["bamtrain"]
