/** Checks what the agents of Refit say about themselves before an upgrade. */
import { type KubeObject, kubeletVersionOf, readyCondition } from '../../kube/resources.ts';
import { type FoundBy, grouped } from '../../ready/finding.ts';
import {
  agentOf,
  downloadAnswerOn,
  heartbeatOn,
  oldContainerdOn,
  type Procedure,
  procedureOf,
  SILENT_MS,
  silenceOn,
} from '../../signal/agent-presence.ts';
import type { ControlNode } from '../../signal/names.ts';
import { containerdRefusal } from '../../versions/k0s-rules.ts';
import { hostRefusal } from './host-refusals.ts';

/** The disk space in MiB that an update needs. The binaries for v1.36.3 need 208 MiB with kubeadm, and about the same with k0s. */
export const PAYLOAD_MIB = 256;

/** Returns the whole MiB that are free for downloads, as the agent of the object reports them; undefined if it does not. */
export function freeMiBOn(object: KubeObject): number | undefined {
  // Only hosts for Cluster API, and hosts with cgroup v1, send heartbeats. Each agent measures for its download checks.
  const room = heartbeatOn(object).room ?? downloadAnswerOn(object)?.room;
  return room === undefined ? undefined : Math.floor(room / 1024 ** 2);
}

/** The objects of one kind on which agents announce themselves. The objects of a list lack their kind. */
export interface AgentObjects {
  readonly kind: 'Node' | 'ControlNode';
  readonly objects: readonly KubeObject[];
}

/** Returns the findings about the agents with this procedure. */
export function agentFindings({ kind, objects }: AgentObjects, procedure: Procedure): FoundBy[] {
  const found = objects.flatMap((object) =>
    problemsOf(object, procedure).map((problem) => ({
      ...problem,
      object: `${kind} ${object.metadata.name}`,
    })),
  );
  return grouped(found);
}

function problemsOf(object: KubeObject, procedure: Procedure): FoundBy[] {
  const { doubt } = agentOf(object);
  const isOurs = procedureOf(object) === procedure;
  if (doubt !== undefined && procedure === 'k0s')
    return [
      {
        state: 'blocker',
        message: `its agent carries out no new signal: ${doubt}`,
        cure: 'let only one of both agents act on this host',
      },
    ];
  if (!isOurs) return [];
  // What an agent has said does not count once it is silent, because it may have been removed.
  if (silenceOn(object) > SILENT_MS)
    // A Node that is not Ready has another finding.
    return readyCondition(object)?.status === 'True'
      ? [
          {
            state: 'warning',
            message: 'its agent has sent no heartbeat for longer than its kubelet',
            cure: 'start the agent again, and read its journal',
          },
        ]
      : [];
  const freeMiB = freeMiBOn(object);
  const findings: FoundBy[] = [];
  if (freeMiB === undefined)
    findings.push({
      state: 'unknown',
      message: 'its agent has not told how much space is free for downloads',
    });
  else if (freeMiB < PAYLOAD_MIB)
    findings.push({
      state: 'blocker',
      message: `it has ${freeMiB} MiB free for downloads, and an upgrade needs ${PAYLOAD_MIB} MiB`,
      cure: 'free disk space on it',
    });
  return findings;
}

/** Returns what the agents have found on their hosts that k0s of this version refuses. */
export function k0sHostFindings({ kind, objects }: AgentObjects, to: string): FoundBy[] {
  const found = objects.flatMap((object): FoundBy[] => {
    const name = `${kind} ${object.metadata.name}`;
    const host = hostRefusal(object, to);
    const version = (object as ControlNode).status?.k0sVersion ?? kubeletVersionOf(object);
    const containerd = containerdRefusal(oldContainerdOn(object), version, to);
    return [
      ...(host === undefined ? [] : [{ state: 'blocker', object: name, message: host } as const]),
      ...(containerd === undefined
        ? []
        : [
            {
              state: 'blocker',
              object: name,
              message: containerd,
              cure: 'prepare each file with `version = 3` and the plugins of containerd 2, and exchange it together with the upgrade of its host',
            } as const,
          ]),
    ];
  });
  return grouped(found);
}

/** Returns a finding about objects without an agent, if other objects have one of this procedure. */
export function withoutAgents({ kind, objects }: AgentObjects, procedure: Procedure): FoundBy[] {
  const without = objects.filter((object) => agentOf(object).title === 'unknown');
  const isUsed = objects.some((object) => procedureOf(object) === procedure);
  if (!isUsed) return [];
  const found = without.map(
    ({ metadata }): FoundBy => ({
      state: 'warning',
      object: `${kind} ${metadata.name}`,
      message: 'no agent acts on it, although agents act on others',
      cure: 'install the agent on it, or leave it out of the plan',
    }),
  );
  return grouped(found);
}
