/**
 * Measures the time that a survey of a hundred kubeadm hosts takes over SSH. Alternates between the survey and a script
 * that does nothing on the hosts.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { ADDRESS, makeKey, type SshServer } from '../../sandbox/sshd/server.ts';
import { createStandInHost, type StandInHost } from '../../sandbox/sshd/stand-in-host.ts';
import { onAll } from '../../src/dialects/kubeadm/command/upgrade-session.ts';
import { probeHost } from '../../src/dialects/kubeadm/host/probe.ts';
import { loadManifest, type Manifest } from '../../src/dialects/kubeadm/plan/manifest.ts';
import { openShells, type SshShells } from '../../src/dialects/kubeadm/plan/ssh.ts';
import type { Clock } from '../../src/util/clock.ts';
import { startDebianServer, whyNoSshd } from '../../test/support/kubeadm/debian-server.ts';
import { type Findings, formatNumber } from '../figures.ts';
import { median } from '../statistics.ts';

const HOSTS = 100;
/** The roles of the machines. Each machine represents ten hosts. */
const ROLES = ['controlPlane', ...Array.from({ length: 9 }, () => 'worker' as const)] as const;
const ROUNDS = 3;
const FROM = 'v1.36.2';
const TO = 'v1.36.3';

interface SurveyParts {
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

/** The work of a survey, and its results in each round. */
interface Survey {
  readonly name: string;
  readonly work: (manifest: Manifest, shells: SshShells) => Promise<unknown>;
  readonly seconds: number[];
  /** The part of the CPU time of all cores that was used, from 0 to 1. */
  readonly busy: number[];
}

export async function measureSurveys(parts: SurveyParts): Promise<Findings> {
  const why = whyNoSshd();
  if (why !== undefined) throw new Error(why);
  const { clock, abort } = parts;
  await using started = new AsyncDisposableStack();
  const manifest = await startHosts(join(parts.directory, 'kubeadm'), started);
  const bare: Survey = {
    name: 'true',
    work: async ({ hosts }, shells) =>
      await onAll(hosts, async (host) => await shells.run(host, 'true\n')),
    seconds: [],
    busy: [],
  };
  const probe: Survey = {
    name: 'probe',
    work: async (of, shells) =>
      await onAll(of.hosts, async (host) => await probeHost(shells, of, host, clock.now())),
    seconds: [],
    busy: [],
  };
  for (let round = 0; round < ROUNDS; round++) {
    for (const each of [bare, probe]) {
      abort.throwIfAborted();
      await survey(each, manifest, clock);
    }
  }
  return findings(probe, bare);
}

/**
 * Starts ten machines with an sshd each. Each machine has ten host names. This is possible because a survey writes
 * nothing, and an sshd accepts ten logins at the same time.
 */
async function startHosts(directory: string, started: AsyncDisposableStack): Promise<Manifest> {
  await mkdir(directory, { recursive: true });
  const identity = join(directory, 'identity');
  await makeKey(identity);
  const kubeconfig = join(directory, 'admin.conf');
  await writeFile(kubeconfig, '');
  const servers: (SshServer & Pick<StandInHost, 'role'>)[] = [];
  for (const [index, role] of ROLES.entries()) {
    const own = join(directory, String(index));
    const options = { name: `m${index}`, role, version: FROM, offers: [TO], kubeconfig };
    const host = await createStandInHost({ ...options, root: join(own, 'root') });
    const server = await startDebianServer({ host, directory: own, clientKey: `${identity}.pub` });
    started.defer(async () => await server.stop());
    servers.push({ role, ...server });
  }
  await writeFile(
    join(directory, 'known_hosts'),
    servers.map(({ knownHost }) => knownHost).join(''),
  );
  const names = Array.from({ length: HOSTS / servers.length }, (_, index) => index);
  const hosts = names.flatMap((name) =>
    servers.map(({ role, port }) => ({ name: `h${name}-${port}`, role, address: ADDRESS, port })),
  );
  const of = (name: string): object => ({ path: `/opt/kubernetes/${TO}/${name}` });
  const binaries = { kubeadm: of('kubeadm'), kubelet: of('kubelet') };
  const ssh = { identityFile: 'identity', knownHostsFile: 'known_hosts' };
  const file = join(directory, 'cluster.yaml');
  await writeFile(file, JSON.stringify({ version: TO, hosts, binaries, ssh }));
  return await loadManifest(file);
}

/**
 * Runs a survey over its own SSH connections, as `refit kubeadm` does. The time to close the connections does not
 * count.
 */
async function survey(
  { work, seconds, busy }: Survey,
  manifest: Manifest,
  clock: Clock,
): Promise<void> {
  await using shells = await openShells(manifest.ssh);
  const began = clock.monotonic();
  const before = await busySeconds();
  await work(manifest, shells);
  const took = (clock.monotonic() - began) / 1000;
  seconds.push(took);
  busy.push(((await busySeconds()) - before) / took / availableParallelism());
}

/** Returns the seconds of CPU time of all cores since the machine started. The kernel counts hundredths of a second. */
async function busySeconds(): Promise<number> {
  const [first = ''] = (await readFile('/proc/stat', 'utf8')).split('\n');
  const [user = 0, nice = 0, system = 0] = first.split(/\s+/).slice(1).map(Number);
  return (user + nice + system) / 100;
}

function findings(probe: Survey, bare: Survey): Findings {
  const ours = median(probe.seconds);
  const theirs = median(bare.seconds);
  const rounds = `${HOSTS} hosts of this machine, median of ${ROUNDS} rounds`;
  return {
    figures: [
      {
        key: 'kubeadm.probeRatioVsTrue',
        value: ours / theirs,
        unit: '×',
        madeOf: `${formatNumber(ours)} s ÷ ${formatNumber(theirs)} s of \`true\`, ${rounds}`,
      },
      {
        key: 'kubeadm.probeSeconds100',
        value: ours,
        unit: 's',
        goal: { bound: 'most', limit: 10 },
        madeOf: `${rounds}; ${formatNumber(median(probe.busy) * 100)} % of its cores were busy`,
      },
    ],
    details: [
      {
        title: `Seconds for ${HOSTS} hosts in each round, and share of the cores that was busy`,
        header: ['SCRIPT', 'SECONDS', 'BUSY'],
        rows: [bare, probe].map(({ name, seconds, busy }) => [
          name,
          seconds.map(formatNumber).join(', '),
          busy.map(formatNumber).join(', '),
        ]),
      },
    ],
  };
}
