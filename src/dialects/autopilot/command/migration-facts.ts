/**
 * Reads the facts that decide whether a k0s cluster can migrate from k0s's own autopilot: versions, agents, worker
 * profiles and the leader.
 */

import { plans } from '../../../api/autopilot/plan.ts';
import { askLeader, type LeaderView } from '../../../cli/status/load.ts';
import type { Role } from '../../../engine/model/rollout.ts';
import type { Reading } from '../../../kube/client.ts';
import {
  configMaps,
  type KubeObject,
  kubeletVersionOf,
  type Lease,
  leases,
} from '../../../kube/resources.ts';
import { ifAllowed, ifFound } from '../../../kube/status-error.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import { agentOf } from '../../../signal/agent-presence.ts';
import { installedVersion } from '../../../signal/annotations.ts';
import { CENTRAL_CORDONING_LABEL, controlNodes, nodeNameOf } from '../../../signal/names.ts';
import { heedsSwitch, leavesAgentOn } from '../../../signal/own-agent.ts';
import { parseVersion } from '../../../util/version.ts';
import { isKubernetesPart, mayBePartOf } from '../../../versions/release-parts.ts';
import { LEADER_LEASE } from '../leader-lease.ts';

/** A host of the cluster: a controller or a worker. */
export interface MigratingHost {
  readonly name: string;
  readonly role: Role;
  /**
   * The version of k0s on a controller. On a worker, the version that the last update installed, or the version of the
   * kubelet if that update installed another version. Undefined if no version is reported.
   */
  readonly version: string | undefined;
  /** The agent that runs on the host, as text for people. */
  readonly agent: string;
  /** True if the agent is Refit's. */
  readonly isOurs: boolean;
  /** True if k0s of this version can run without its own agent. */
  readonly canSwitchOff: boolean;
}

/**
 * Returns the version for people. The kubelet of a worker reports only the release of k0s and not the build:
 * `v1.36.3+k0s` for `v1.36.3+k0s.2`. The build is known only if an update by an agent installed it.
 */
export function runningVersion({ role, version }: MigratingHost): string {
  if (version === undefined) return 'not known';
  if (role === 'controller') return version;
  if (!version.includes('+k0s')) return 'not known';
  return isKubernetesPart(version) ? `${version}, build not known` : version;
}

export interface MigrationFacts {
  readonly hosts: readonly MigratingHost[];
  /** The names of the worker profiles with which k0s starts its own agent; undefined if the profiles cannot be read. */
  readonly profilesOn: readonly string[] | undefined;
  readonly leader: LeaderView;
  /** The name of the controller whose k0s leads; undefined if Refit leads, or if the Leases of k0s do not show it. */
  readonly leadingController: string | undefined;
  /** True while a Plan exists that has not ended. */
  readonly isRunning: boolean;
  /** The address of a load balancer; undefined if the kubeconfig names one API server. */
  readonly balancer: string | undefined;
}

const PROFILE = 'worker-config-';
/** Each controller of k0s holds a Lease of this name and its host name, under the same identity as the Lease of the leader. */
const OWN_LEASE = 'k0s-ctrl-';

/** Reads the facts. `server` is the URL of the API server in the kubeconfig, and `now` is in milliseconds. */
export async function readFacts(
  { client, abort }: Reading,
  server: string,
  now: number,
): Promise<MigrationFacts> {
  const [controllers, workers, nodeLeases, profiles, plan, leader] = await Promise.all([
    client.listAll(controlNodes, { abort }),
    listNodes(client, { abort }),
    ifAllowed(client.listAll(leases, { abort, namespace: 'kube-node-lease' })),
    ifAllowed(client.listAll(configMaps, { abort, namespace: 'kube-system' })),
    ifFound(client.get(plans, 'autopilot', { abort })),
    askLeader({ client, abort, lease: LEADER_LEASE }, now),
  ]);
  const marks = new Map(
    (nodeLeases?.items ?? []).map((lease) => [lease.metadata.name, markedAt(lease)]),
  );
  const own = new Set(controllers.items.map((each) => nodeNameOf(each)));
  const state = plan?.status?.state;
  const host = new URL(server).hostname.replaceAll(/[[\]]/g, '');
  const hosts = [
    ...controllers.items.map((each) => hostOf(each, 'controller', each.status?.k0sVersion)),
    ...workers.items
      .filter(({ metadata }) => !own.has(metadata.name))
      .map((each) => hostOf(each, 'worker', kubeletVersionOf(each), marks.get(each.metadata.name))),
  ];
  const minors = minorsOf(hosts);
  return {
    hosts,
    profilesOn: profiles?.items
      .filter(
        ({ metadata: { name }, data }) =>
          // Only the profiles of minor releases that a host runs are used, because k0s does not rewrite the profiles of
          // other releases.
          name.startsWith(PROFILE) &&
          minors.some((minor) => name.endsWith(`-${minor}`)) &&
          leavesAgentOn(data),
      )
      .map(({ metadata }) => metadata.name),
    leader,
    leadingController: nodeLeases?.items
      .find(
        ({ metadata, spec }) =>
          metadata.name.startsWith(OWN_LEASE) &&
          'holder' in leader &&
          spec?.holderIdentity === leader.holder,
      )
      ?.metadata.name.slice(OWN_LEASE.length),
    isRunning: plan !== undefined && (state === undefined || state.startsWith('Schedulable')),
    balancer: controllers.items.some(({ status }) =>
      status?.addresses?.some(({ address }) => address === host),
    )
      ? undefined
      : server,
  };
}

/**
 * Returns the minor releases that the hosts run, without duplicates, in the form that the names of worker profiles
 * contain.
 */
export function minorsOf(hosts: readonly Pick<MigratingHost, 'version'>[]): string[] {
  const versions = hosts
    .map(({ version }) => parseVersion(version))
    .filter((it) => it !== undefined);
  return [...new Set(versions.map(({ major, minor }) => `${major}.${minor}`))];
}

function hostOf(object: KubeObject, role: Role, version?: string, marked?: string): MigratingHost {
  const { title, ours } = agentOf(object);
  // The last completed update names the build, which the kubelet of a worker does not report.
  const installed = installedVersion(object.metadata.annotations);
  const isExact =
    version !== undefined && installed !== undefined && mayBePartOf(version, installed);
  // Both agents mark the Lease. Refit's agent also announces itself in an annotation of its object. So if there is a
  // mark and no announcement, k0s's own agent has set the mark.
  const agent = title === 'unknown' && marked !== undefined ? `k0s's own, seen ${marked}` : title;
  return {
    name: object.metadata.name,
    role,
    version: isExact ? installed : version,
    agent,
    isOurs: ours,
    canSwitchOff: heedsSwitch(version),
  };
}

/**
 * Returns the time at which an agent last marked this Lease of a node; undefined if the Lease has no mark. An agent
 * marks the Lease when it starts.
 */
function markedAt({ metadata }: Lease): string | undefined {
  if (metadata.labels?.[CENTRAL_CORDONING_LABEL] === undefined) return undefined;
  return metadata.managedFields?.find(({ manager }) => manager === 'k0s/autopilot')?.time;
}
