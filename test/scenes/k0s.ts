/** The parts of a k0s cluster in a scene: its objects, the controller of Refit, and agents that do what the scene says. */
import { controllerAddress } from '../../sandbox/cluster/hosts.ts';
import { LEADER_LEASE } from '../../src/dialects/autopilot/leader-lease.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import {
  type KubeObject,
  leases,
  type Node,
  nodes,
  type Resource,
} from '../../src/kube/resources.ts';
import { type AgentPresence, encodePresence } from '../../src/signal/agent-presence.ts';
import {
  type AgentReport,
  decodeSignal,
  encodeReport,
  encodeSignal,
  type SignalData,
} from '../../src/signal/annotations.ts';
import {
  AGENT_ANNOTATION,
  CENTRAL_CORDONING_LABEL,
  type ControlNode,
  controlNodes,
  MODE_ANNOTATION,
  type SignalStatus,
} from '../../src/signal/names.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import { kubernetesPartOf } from '../../src/versions/release-parts.ts';
import { controllerOf } from './controller.ts';
import type { Actor, Stage } from './stage.ts';

export const FROM = 'v1.36.3+k0s.0';
const PLATFORM = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };

/** Creates controllers c1, c2, … and workers w1, w2, … with their Leases. All of them run `FROM`. */
export async function createK0sCluster(
  stage: Stage,
  controllers: number,
  workers: number,
): Promise<void> {
  const presence = presenceOf(stage.clock.now());
  for (let index = 1; index <= controllers; index++)
    await stage.create(controlNodes, controlNode(index, presence));
  for (let index = 1; index <= workers; index++) {
    await stage.create(nodes, worker(`w${index}`, presence));
    await stage.create(leases, nodeLease(`w${index}`));
  }
}

function controlNode(index: number, presence: Presence): ControlNode {
  return {
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'ControlNode',
    metadata: {
      name: `c${index}`,
      labels: PLATFORM,
      annotations: { [MODE_ANNOTATION]: 'controller', ...presence },
    },
    status: {
      addresses: [{ type: 'InternalIP', address: controllerAddress(index) }],
      k0sVersion: FROM,
    },
  };
}

export function worker(name: string, annotations: Presence): Node {
  const nodeInfo = {
    kubeletVersion: kubernetesPartOf(FROM),
    operatingSystem: 'linux',
    architecture: 'amd64',
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, annotations, labels: { ...PLATFORM, 'kubernetes.io/hostname': name } },
    status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo },
  };
}

export type Presence = Readonly<Record<string, string>>;

/** What the agent of Refit announces. After an upgrade, its host keeps the earlier version. */
export function presenceOf(
  since: number,
  kept?: string,
  more: Partial<AgentPresence> = {},
): Presence {
  const presence = { version: '0.1.0', since: rfc3339(since), ...more };
  return {
    [AGENT_ANNOTATION]: encodePresence(
      kept === undefined
        ? presence
        : { ...presence, kept: { version: kept, sha256: 'ef'.repeat(32) } },
    ),
  };
}

export function nodeLease(name: string) {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-node-lease', labels: { [CENTRAL_CORDONING_LABEL]: '' } },
    spec: { holderIdentity: name },
  };
}

const CONTROLLER = {
  component: 'refit-controller',
  dialects: [autopilot],
  lease: {
    ...LEADER_LEASE,
    labels: (identity: string) => ({ [CENTRAL_CORDONING_LABEL]: identity }),
  },
} as const;

/** The controller as `refit controller` starts it. */
export const k0sController: Actor = controllerOf(CONTROLLER);

/** The same controller; the API server of the controller with this number is not ready. */
export function k0sControllerWithout(index: number): Actor {
  return controllerOf(CONTROLLER, (address) => (address === controllerAddress(index) ? 500 : 200));
}

/** What an agent does next; undefined if it reports nothing new. */
export type NextStep = (step: {
  readonly name: string;
  readonly status: string;
  readonly signal: SignalData;
  /** Seconds since the last report. */
  readonly seconds: number;
}) => { readonly status: SignalStatus; readonly report?: Partial<AgentReport> } | undefined;

const NEXT: Readonly<Record<string, SignalStatus | undefined>> = {
  '': 'Downloading',
  Downloading: 'Cordoning',
  ApplyingUpdate: 'Restart',
  Restart: 'UnCordoning',
};

/** An agent that needs five seconds for each step, and has no problem. */
export const asUsual: NextStep = ({ status, seconds }) => {
  const next = NEXT[status];
  return next === undefined || (status !== '' && seconds < 5) ? undefined : { status: next };
};

/**
 * Agents of Refit on all nodes, which do what `next` says. `installed` has the version that each node runs now; nodes
 * that are not in it run `FROM`.
 */
export function agents(
  next: NextStep = asUsual,
  installed: Map<string, string> = new Map<string, string>(),
): Actor {
  return async ({ client, clock }) => {
    /** The version that each node ran before its present upgrade. */
    const versions = new Map<string, string>();
    const look = async <T extends KubeObject>(resource: Resource<T>, object: T): Promise<void> => {
      const { name, annotations } = object.metadata;
      const signal = decodeSignal(annotations);
      if (!signal) return;
      const { status = '', timestamp = signal.created } = signal.status ?? {};
      const now = clock.now();
      const seconds = (now - Date.parse(timestamp)) / 1000;
      const step = next({ name, status, signal, seconds });
      if (!step) return;
      const { version } = signal.command;
      if (status === '') versions.set(name, installed.get(name) ?? FROM);
      // While the node starts the new version, it remembers the earlier one.
      const from = versions.get(name) ?? FROM;
      const isNew = status === 'Restart' && step.status === 'UnCordoning';
      const reported = {
        ...annotations,
        ...encodeSignal({ ...signal, status: { status: step.status, timestamp: rfc3339(now) } }),
        ...encodeReport({
          created: signal.created,
          from,
          ...step.report,
        }),
        ...(isNew ? presenceOf(now, from) : {}),
      };
      await client.replace(resource, {
        ...object,
        metadata: { ...object.metadata, annotations: reported },
      });
      if (isNew) await client.patch(resource, name, { status: toldBy(object, version) }, STATUS);
      if (isNew) installed.set(name, version);
    };
    return await Promise.resolve({
      tick: async () => {
        for (const node of (await client.list(controlNodes)).items) await look(controlNodes, node);
        for (const node of (await client.list(nodes)).items) await look(nodes, node);
      },
    });
  };
}

const STATUS = { type: 'merge', subresource: 'status' } as const;

function toldBy({ kind }: KubeObject, version: string): object {
  return kind === 'Node'
    ? { nodeInfo: { kubeletVersion: kubernetesPartOf(version) } }
    : { k0sVersion: version };
}
