/** The mutations of the agent: what it accepts as proven or done, what it watches, and when it gives up. */
import * as files from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApiServer } from '../../sandbox/api-server/api-server.ts';
import { startDownloadServer } from '../../sandbox/hosts/download-server.ts';
import type { FetchTools } from '../../src/agent/download/fetch.ts';
import type { DownloadRequest } from '../../src/agent/download/stage-binary.ts';
import { download } from '../../src/agent/download/stage-binary.ts';
import { nextStep } from '../../src/agent/next-step.ts';
import { ownObject } from '../../src/agent/object/own-object.ts';
import { kubeletHeartbeat } from '../../src/agent/service/kubelet-heartbeat.ts';
import type { OwnNodeFacts, StepInput } from '../../src/agent/step-input.ts';
import type { Step } from '../../src/agent/steps/step.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { type Node, nodes } from '../../src/kube/resources.ts';
import { clientOver } from '../../src/kube/transport/http-client.ts';
import { rfc3339, systemClock } from '../../src/util/clock.ts';
import { silentLogger } from '../../src/util/log.ts';
import {
  after,
  forced,
  journalAt,
  NEW,
  OLD,
  running,
  signalAt,
  situation,
  workFor,
} from '../support/builders/agent-situations.ts';
import { type Complaint, mutation } from './mutation.ts';

type Decide = (input: StepInput) => Step;
type Heartbeat = ReturnType<typeof kubeletHeartbeat>;
type CheckHeartbeat = (
  heartbeat: Heartbeat,
  newest: Node,
  ...asked: Parameters<Heartbeat>
) => Promise<OwnNodeFacts>;
type Download = (request: DownloadRequest, tools: FetchTools) => Promise<void>;

/**
 * Tests a forced update after the restart. The service that starts runs another file than the file that the agent
 * installed.
 */
function forceIsVerified(decide: Decide): Complaint {
  const step = decide(
    situation({
      signal: signalAt('Restart', forced),
      journal: journalAt('restarted', { work: workFor(forced), since: 1_000_000 }),
      host: running(NEW, after, false),
    }),
  );
  return step.kind === 'await-service' ? undefined : `goes on to ${step.kind}`;
}

/** Tests a node that an earlier update left cordoned, and that already runs the wanted version. */
function noCordonIsLeft(decide: Decide): Complaint {
  const signal = { ...signalAt(), command: { ...signalAt().command, version: OLD } };
  const step = decide(situation({ signal, node: { isCordoned: true } }));
  const isUncordoned = step.kind === 'report' && step.status === 'UnCordoning';
  return isUncordoned
    ? undefined
    : `${step.kind} ${step.kind === 'report' ? step.status : ''} on a cordoned node`;
}

/**
 * Tests a service that was restarted a minute ago. The new version answers, but the Ready condition is from before the
 * restart.
 */
async function staleHeartbeatIsNoProof(check: CheckHeartbeat): Promise<Complaint> {
  const restartedAt = 1_000_000;
  const now = restartedAt + 60_000;
  const journal = journalAt('soaking', { fresh: after, since: restartedAt, restartedAt });
  const lastHeartbeatTime = rfc3339(restartedAt - 60_000);
  const status: Node['status'] = {
    conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime }],
  };
  const newest = { metadata: { name: 'worker1' }, status };
  const readNode = async (): Promise<Node> => await Promise.resolve(newest);
  const clock = { ...systemClock, now: () => now };
  const heartbeat = kubeletHeartbeat({
    maintenance: { readNode },
    ageOf: async () => await Promise.resolve(0),
    object: { newest },
    clock,
    log: silentLogger,
  });
  const node = await check(
    heartbeat,
    newest,
    journal,
    running(NEW, after),
    () => now,
    new AbortController().signal,
  );
  const step = nextStep(
    situation({ signal: signalAt('Restart'), journal, host: running(NEW, after), node, now }),
  );
  return step.kind === 'await-service' ? undefined : `goes on to ${step.kind}`;
}

/** Tests a download from a server that is busy for a moment. */
async function oneFailureIsNoEnd(get: Download): Promise<Complaint> {
  const directory = await files.mkdtemp(join(tmpdir(), 'refit-parity-'));
  const payload = join(directory, 'payload');
  await files.writeFile(payload, 'k0s');
  const server = await startDownloadServer({
    files: { '/k0s': payload },
    faults: [{ status: 503, times: 1 }],
  });
  const inDirectory = (name: string): string => join(directory, name);
  const request: DownloadRequest = {
    url: `${server.url}/k0s`,
    sha256: server.sha256('/k0s'),
    staged: inDirectory('k0s.tmp'),
    paths: { part: inDirectory('part'), record: inDirectory('record') },
    userAgent: 'refit-agent/0 (worker1)',
    prepare: async () => await Promise.resolve(),
    limits: { maxBytes: 1000, reserveBytes: 0, totalMs: 60_000, stallMs: 60_000 },
  };
  const { signal: abort } = new AbortController();
  const tools = {
    clock: systemClock,
    random: () => 0,
    log: silentLogger,
    files,
    environment: {},
    abort,
  };
  try {
    return await get(request, tools).then(
      () => undefined,
      () => `given up after ${server.requests.length} request`,
    );
  } finally {
    await server.stop();
    await files.rm(directory, { recursive: true });
  }
}

/** Gives up after the first failure, as k0s Autopilot does. */
async function withoutRetries(request: DownloadRequest, tools: FetchTools): Promise<void> {
  const ending = new AbortController();
  const log = { ...silentLogger, warn: () => ending.abort(new Error('the download failed')) };
  await download(request, { ...tools, log, abort: ending.signal });
}

/** Tests which Nodes of its cluster an agent receives in its watch. */
async function othersAreNotWatched(
  between: (client: KubeClient) => KubeClient,
): Promise<Complaint> {
  const server = await startApiServer();
  const told = new Set<string>();
  const client = listening(clientOver(server.caller), (name) => told.add(name));
  const stop = new AbortController();
  try {
    for (const name of ['worker1', 'worker2', 'worker3'])
      await client.create(nodes, { metadata: { name } });
    const parts = {
      resource: nodes,
      name: 'worker1',
      clock: systemClock,
      random: () => 0,
      log: silentLogger,
    };
    const object = ownObject({ ...parts, client: between(client) });
    const isKnown = new Promise<void>((resolve) => void object.onChange(resolve));
    const following = object.follow(stop.signal);
    await isKnown;
    stop.abort();
    await following;
  } finally {
    await server.stop();
  }
  const others = [...told].filter((name) => name !== 'worker1');
  return others.length === 0 ? undefined : `told of ${others.join()}`;
}

/** Calls `tell` with the name of each object that a watch adds. */
function listening(client: KubeClient, tell: (name: string) => void): KubeClient {
  const watch: KubeClient['watch'] = client.watch.bind(client);
  return Object.assign(client, {
    async *watch(...[resource, options]: Parameters<KubeClient['watch']>) {
      for await (const event of watch(resource, options)) {
        if (event.type === 'ADDED') tell(event.object.metadata.name);
        yield event;
      }
    },
  });
}

function isReady(node: Node | undefined): boolean {
  return (
    node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ??
    false
  );
}

function withoutSelector(client: KubeClient): KubeClient {
  const watch: KubeClient['watch'] = client.watch.bind(client);
  const all: KubeClient['watch'] = (resource, options) =>
    watch(resource, { ...options, fieldSelector: undefined });
  return Object.assign(client, { watch: all });
}

export const AGENT_MUTATIONS = [
  mutation(
    {
      weakness: 9,
      without:
        'the check of the file of the new process: a forced update counts as soon as anything runs',
      complaint: 'goes on to soak',
    },
    forceIsVerified,
    {
      real: nextStep,
      mutated: (input) => {
        const { running: seen } = input.host;
        return nextStep(
          seen ? { ...input, host: { ...input.host, running: { ...seen, current: true } } } : input,
        );
      },
    },
  ),
  mutation(
    {
      weakness: 13,
      without: 'the age of the heartbeat: Ready stays true after a kubelet ends',
      complaint: 'goes on to report',
    },
    staleHeartbeatIsNoProof,
    {
      real: async (heartbeat, _newest, ...asked) => await heartbeat(...asked),
      mutated: async (_heartbeat, newest) => await Promise.resolve({ isReady: isReady(newest) }),
    },
  ),
  mutation(
    {
      weakness: 18,
      without: 'another attempt after a failure that may pass',
      complaint: 'given up after 1 request',
    },
    oneFailureIsNoEnd,
    { real: download, mutated: withoutRetries },
  ),
  mutation(
    {
      weakness: 45,
      without: 'the field selector of the watch',
      complaint: 'told of worker2,worker3',
    },
    othersAreNotWatched,
    { real: (client) => client, mutated: withoutSelector },
  ),
  mutation(
    {
      weakness: 64,
      without: 'the check for a cordon that an earlier update left',
      complaint: 'report Completed on a cordoned node',
    },
    noCordonIsLeft,
    { real: nextStep, mutated: (input) => nextStep({ ...input, node: {} }) },
  ),
];
