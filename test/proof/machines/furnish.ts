/** Installs on a new machine what every kind of cluster needs: a container runtime, a network for pods, and iptables. */
import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Machine } from './machine.ts';

const HERE = import.meta.dirname;

export interface BaseFurniture {
  /** Lines of /etc/hosts. */
  readonly hosts: string;
  /** The text of more files, by their path below the root of the machine. */
  readonly files: Readonly<Record<string, string>>;
}

export async function furnishBase(
  { root, address }: Machine,
  { hosts, files }: BaseFurniture,
): Promise<void> {
  const at = (...path: string[]): string => join(root, ...path);
  await copyFile(join(HERE, 'systemctl'), at('local/bin/systemctl'));
  await chmod(at('local/bin/systemctl'), 0o755);
  await packaged(at('local/sbin'));
  const all = {
    'etc/cni/net.d/10-bridge.conflist': bridge(Number(address.split('.')[3])),
    'etc/hosts': `127.0.0.1 localhost\n${hosts}`,
    'etc/resolv.conf': 'nameserver 127.0.0.1\n',
    ...files,
  };
  for (const [path, content] of Object.entries(all)) {
    await mkdir(dirname(at(path)), { recursive: true });
    await writeFile(at(path), content);
  }
}

/** The configuration of a containerd that a machine runs by itself. `sandbox` is the name of the image of the pause container, which holds the namespaces of a pod. */
export async function containerdConfiguration(sandbox: string): Promise<string> {
  return (await readFile(join(HERE, 'containerd.toml'), 'utf8')).replace('SANDBOX', sandbox);
}

/**
 * Installs wrappers for the programs of Debian packages that are only unpacked. Each wrapper sets the path of the
 * libraries.
 */
async function packaged(directory: string): Promise<void> {
  const debian = '/opt/parts/debian';
  const libraries = `$(echo ${debian}/usr/lib/*-linux-gnu*)`;
  const wrapper = (program: string, word: string): string =>
    `#!/bin/sh\nLD_LIBRARY_PATH=${libraries} XTABLES_LIBDIR=${libraries}/xtables exec ${debian}/usr/sbin/${program} ${word} "$@"\n`;
  const tables = ['', '-save', '-restore'].flatMap((end) => [`iptables${end}`, `ip6tables${end}`]);
  const programs = [
    ...tables.map((name) => [name, wrapper('xtables-nft-multi', name)] as const),
    ['conntrack', wrapper('conntrack', '')] as const,
    ['runc', wrapper('runc', '')] as const,
  ];
  for (const [name, text] of programs) {
    await writeFile(join(directory, name), text);
    await chmod(join(directory, name), 0o755);
  }
}

const bridge = (number: number): string =>
  JSON.stringify({
    cniVersion: '1.0.0',
    name: 'machines',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni0',
        isGateway: true,
        ipMasq: false,
        ipam: {
          type: 'host-local',
          ranges: [[{ subnet: `10.244.${number}.0/24` }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
    ],
  });
