/** Reads the truth about a state from the parts of the model that no surface may read: hosts, signals and people. */
import { controlsOn } from '../../src/engine/model/controls.ts';
import { rolledBackBy } from '../../src/engine/model/earlier-versions.ts';
import type { Node } from '../../src/kube/resources.ts';
import { holdOn } from '../../src/signal/holds.ts';
import type { ControlNode } from '../../src/signal/names.ts';
import { type Configuration, SECOND_WAVE } from '../model/cluster.ts';
import type { NodeGlance } from '../model/glance.ts';
import { isInMotion } from '../model/host.ts';
import { isApproved } from '../model/people.ts';
import { isPresent } from '../model/presence.ts';
import type { Seen } from '../model/world.ts';
import type { TrueNode, Truth } from './model-told.ts';

/** `admitted` has the runs that leaders have admitted, as `<uid of the plan>/<id>`; undefined if nobody counts them. */
export function truthIn(
  { plan, glance }: Seen,
  { rules }: Configuration,
  admitted?: readonly string[],
): Truth {
  const { abort, paused } = controlsOn(plan);
  const needsApproval = rules.waves === 'approved' && !isApproved(plan);
  return {
    asked: glance.versions,
    isPaused: paused,
    isAborted: abort !== undefined,
    isRollBack: rolledBackBy(plan) !== undefined,
    admitted,
    targets: new Set(glance.recorded.map(({ name }) => name)),
    nodes: glance.nodes.map((node) => truthAbout(node, needsApproval)),
  };
}

/** Returns the version that the object tells; undefined if the objects of the configuration tell none. */
function versionOn(object: NodeGlance['object']): string | undefined {
  const { status } = object as ControlNode & Node;
  return status?.k0sVersion ?? status?.nodeInfo?.kubeletVersion;
}

function truthAbout({ spec, host, object, signal }: NodeGlance, needsApproval: boolean): TrueNode {
  return {
    name: spec.name,
    role: spec.role,
    runs: isInMotion(host) ? undefined : host.service?.file,
    reports: versionOn(object),
    signalled: signal?.command.version,
    isGone: !isPresent(object),
    awaitsPerson:
      holdOn(object) !== undefined || (needsApproval && spec.wave === String(SECOND_WAVE)),
  };
}
