/** The agents of a scene: they do what the crew says, and tell the world when an attempt begins. */

import { nodes } from '../../../src/kube/resources.ts';
import { kubernetesPartOf } from '../../../src/versions/release-parts.ts';
import { agents as agentsOf, asUsual, type NextStep } from '../../scenes/k0s.ts';
import type { Actor } from '../../scenes/stage.ts';
import { type Crew, failureOn } from '../../truth/labs/crew.ts';
import type { World } from '../world.ts';

/** What the agent of the product itself reports if the service does not run the version after its restart. */
const NOT_THIS_VERSION = 'after the restart, the service runs another version than the plan wants';

export function agentsIn(world: World, crew: Crew): Actor {
  const next: NextStep = (step) => {
    const { name, status, signal } = step;
    if (status === '') world.noteStart(name, `${name} ${signal.created}`);
    if (crew.silent.has(name)) return undefined;
    if (status === 'Downloading') {
      const reason = failureOn(world.scenery, crew, name);
      if (reason !== undefined) return { status: 'FailedDownload', report: { reason } };
    }
    if (status === 'Restart' && step.seconds >= 5 && world.stuck.has(name))
      return { status: 'Failed', report: { reason: NOT_THIS_VERSION } };
    return asUsual(step);
  };
  return agentsOf(next, world.truth.runs);
}

/** Changes the version that the kubelet of the Node reports, as if somebody had upgraded the host by hand. */
export async function report(world: World, node: string, version: string): Promise<void> {
  const status = { nodeInfo: { kubeletVersion: kubernetesPartOf(version) } };
  await world.stage.client.patch(nodes, node, { status }, { type: 'merge', subresource: 'status' });
}
