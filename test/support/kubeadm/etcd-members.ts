/** Three real members of etcd with TLS as kubeadm makes them, each in the directory of its host. */
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Shells } from '../../../src/dialects/kubeadm/host/host.ts';
import { etcdAnswers } from '../../../src/dialects/kubeadm/host/probe.ts';
import type { ManifestHost } from '../../../src/dialects/kubeadm/plan/manifest.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { ensureComponents } from '../../../tools/controlplane/build.ts';
import {
  createAuthority,
  issueClient,
  issueServer,
  validFrom,
} from '../../../tools/controlplane/certs.ts';
import { freePort } from '../../../tools/controlplane/ports.ts';
import { type Process, startProcess } from '../../../tools/controlplane/process.ts';
import { run } from '../../../tools/controlplane/run.ts';

export interface EtcdMembers extends AsyncDisposable {
  readonly root: string;
  readonly hosts: readonly ManifestHost[];
  /** Runs scripts, each in the directory of its host. */
  readonly shells: Shells;
  folderOf(name: string): string;
  /** Returns the URL for clients of this member. */
  urlOf(name: string): string;
  start(name: string): Promise<void>;
  stop(name: string): Promise<void>;
}

export const NAMES = ['cp1', 'cp2', 'cp3'];
export const MANIFEST = 'etc/kubernetes/manifests/etcd.yaml';
export const API_SERVER = 'etc/kubernetes/manifests/kube-apiserver.yaml';
export const DATA = 'var/lib/etcd';
/** The directory of the certificates. cp2 has a directory that differs from that of the other hosts. */
export const pkiOf = (name: string): string =>
  name === 'cp2' ? 'srv/pki/etcd' : 'etc/kubernetes/pki/etcd';

export async function startEtcdMembers(): Promise<EtcdMembers> {
  const root = await mkdtemp(join(tmpdir(), 'refit-etcd-'));
  const folderOf = (name: string): string => join(root, name);
  const shells: EtcdMembers['shells'] = {
    async run({ name }, script) {
      const environment = {
        REFIT_ROOT: folderOf(name),
        PATH: `${folderOf(name)}/usr/bin:${process.env['PATH']}`,
      };
      const { ok, stdout, stderr } = await run('sh', ['-s'], { environment, input: script });
      return { code: ok ? 0 : 1, stdout, stderr };
    },
  };
  const { etcd } = await ensureComponents(['etcd'], {
    environment: process.env,
    log: () => undefined,
    now: () => systemClock.monotonic(),
  });
  const ports = new Map<string, readonly [client: number, peer: number]>();
  for (const name of NAMES) ports.set(name, [await freePort(), await freePort()]);
  const urlOf = (name: string): string => `https://127.0.0.1:${ports.get(name)?.[0]}`;
  const peerOf = (name: string): string => `http://127.0.0.1:${ports.get(name)?.[1]}`;
  await writeFiles(folderOf, urlOf, peerOf);
  const hosts = NAMES.map((name): ManifestHost => ({ name, role: 'controlPlane' }));
  const processes = new Map<string, Process>();
  const stop = async (name: string): Promise<void> => {
    const ended = processes.get(name);
    processes.delete(name);
    await ended?.stop();
  };
  const start = async (name: string): Promise<void> => {
    const host = { name, role: 'controlPlane' } as const;
    processes.set(
      name,
      await startProcess({
        name: 'etcd',
        command: etcd,
        args: argumentsOf(name, folderOf(name), urlOf, peerOf),
        directory: folderOf(name),
        ready: async () => typeof (await etcdAnswers(shells, [host])).get(name) === 'object',
        clock: systemClock,
      }),
    );
  };
  const end = async (): Promise<void> => {
    await Promise.all(NAMES.map(stop));
    await rm(root, { recursive: true, force: true });
  };
  const failed = (await Promise.allSettled(NAMES.map(start))).find(
    ({ status }) => status === 'rejected',
  );
  if (failed?.status === 'rejected') {
    await end();
    throw failed.reason;
  }
  return {
    root,
    hosts,
    shells,
    folderOf,
    urlOf,
    start,
    stop,
    [Symbol.asyncDispose]: end,
  };
}

/** Returns the arguments for the etcd of the host of that name. `folder` contains the files of the host. */
function argumentsOf(
  name: string,
  folder: string,
  urlOf: (name: string) => string,
  peerOf: (name: string) => string,
): string[] {
  const pki = join(folder, pkiOf(name));
  const tls = [
    '--client-cert-auth',
    `--trusted-ca-file=${pki}/ca.crt`,
    `--cert-file=${pki}/server.crt`,
    `--key-file=${pki}/server.key`,
    // The gateway is also a client, so it needs a certificate for clients. kubeadm's certificate for health checks is
    // one.
    `--client-cert-file=${pki}/healthcheck-client.crt`,
    `--client-key-file=${pki}/healthcheck-client.key`,
  ];
  const cluster = NAMES.map((each) => `${each}=${peerOf(each)}`).join(',');
  const names = [
    `--name=${name}`,
    `--data-dir=${join(folder, DATA)}`,
    `--initial-cluster=${cluster}`,
  ];
  const client = [`--listen-client-urls=${urlOf(name)}`, `--advertise-client-urls=${urlOf(name)}`];
  const peer = [
    `--listen-peer-urls=${peerOf(name)}`,
    `--initial-advertise-peer-urls=${peerOf(name)}`,
  ];
  return [...names, ...client, ...peer, ...tls];
}

async function writeFiles(
  folderOf: (name: string) => string,
  urlOf: (name: string) => string,
  peerOf: (name: string) => string,
): Promise<void> {
  const validity = validFrom(systemClock.now());
  const subject = { commonName: 'etcd-ca' };
  const authority = createAuthority(subject, validity);
  const issuer = { subject, key: authority.key };
  const server = issueServer(issuer, { dns: ['localhost'], addresses: ['127.0.0.1'] }, validity);
  const health = issueClient(issuer, { commonName: 'kube-etcd-healthcheck-client' }, validity);
  const files = {
    'ca.crt': authority.certificate,
    'server.crt': server.certificate,
    'server.key': server.key,
    'healthcheck-client.crt': health.certificate,
    'healthcheck-client.key': health.key,
  };
  for (const name of NAMES) {
    const folder = folderOf(name);
    const pki = join(folder, pkiOf(name));
    for (const path of [
      pki,
      join(folder, MANIFEST, '..'),
      join(folder, DATA),
      join(folder, 'logs'),
      join(folder, 'pids'),
    ])
      await mkdir(path, { recursive: true, mode: 0o700 });
    for (const [file, text] of Object.entries(files)) await writeFile(join(pki, file), text);
    const flags = [
      `--data-dir=/${DATA}`,
      `--initial-advertise-peer-urls=${peerOf(name)}`,
      `--listen-client-urls=${urlOf(name)},https://10.0.0.1:2379`,
      `--name=${name}`,
      `--trusted-ca-file=/${pkiOf(name)}/ca.crt`,
    ];
    const command = flags.map((flag) => `    - ${flag}\n`).join('');
    const spec = `spec:\n  containers:\n  - command:\n    - etcd\n${command}    image: r/etcd:3.6.8-0\n    name: etcd\n`;
    await writeFile(join(folder, MANIFEST), spec);
    const authority = join('/', pkiOf(name), '../ca.crt');
    await writeFile(
      join(folder, API_SERVER),
      `spec:\n  containers:\n  - command:\n    - kube-apiserver\n    - --client-ca-file=${authority}\n    name: kube-apiserver\n`,
    );
  }
}

export async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
