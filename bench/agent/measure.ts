/**
 * Runs the benchmark of one agent. It measures the time that the agent adds to a restart, and the bytes that are
 * downloaded again after the agent was killed.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Plane } from '../../sandbox/cluster/plane.ts';
import { startDownloadServer } from '../../sandbox/hosts/download-server.ts';
import { buildStandIn } from '../../sandbox/hosts/stand-in.ts';
import type { Clock } from '../../src/util/clock.ts';
import type { Findings } from '../figures.ts';
import { Restarts } from '../plan/restarts.ts';
import { agentFindings } from './findings.ts';
import { measureRestarts } from './restarting.ts';
import { measureResumes } from './resuming.ts';
import { AgentRig } from './rig.ts';

const VERSIONS = ['v1.36.3+k0s.0', 'v1.36.3+k0s.2'] as const;
/**
 * A payload whose download takes long enough to be interrupted. With PACE_MS, the server sends about 25 MB per second.
 */
const BIG = { version: 'v1.36.4+k0s.0', path: '/big', bytes: 16 * 1024 * 1024 };
/** The pause in milliseconds after each 64th of the payload. */
const PACE_MS = 10;

export interface AgentParts {
  readonly plane: Plane;
  readonly directory: string;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

export async function measureAgent(parts: AgentParts): Promise<Findings> {
  await using started = new AsyncDisposableStack();
  const stop = new AbortController();
  started.defer(() => stop.abort());
  const payloads = join(parts.directory, 'agent', 'payloads');
  await mkdir(payloads, { recursive: true });
  const files: Record<string, string> = {};
  const builds = [...VERSIONS.map((version) => ({ version, path: `/${version}`, bytes: 0 })), BIG];
  for (const { version, path, bytes } of builds) {
    files[path] = join(payloads, path);
    await buildStandIn({ version, path: files[path], bytes });
  }
  const server = await startDownloadServer({
    files,
    faults: [{ path: BIG.path, paceMs: PACE_MS, times: Infinity }],
  });
  started.defer(async () => await server.stop());
  const restarts = new Restarts(parts.clock, AbortSignal.any([parts.abort, stop.signal]));
  const rig = await AgentRig.start({
    ...parts,
    version: VERSIONS[0],
    onService: (host, running) => restarts.note(host, running),
  });
  started.use(rig);
  restarts.follow([rig.host]);
  const payloadOf = (version: string): { url: string; sha256: string } => ({
    url: `${server.url}/${version}`,
    sha256: server.sha256(`/${version}`),
  });
  const rounds = await measureRestarts(rig, restarts, VERSIONS, payloadOf);
  return agentFindings(rounds, await measureResumes(rig, { server, ...BIG }, Math.random));
}
