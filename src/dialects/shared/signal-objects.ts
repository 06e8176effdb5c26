/** Finds the object that carries the signals of a target, and replaces it. */
import type { Instruction } from '../../engine/contract/signal.ts';
import type { World } from '../../engine/contract/world.ts';
import type { Stage, Target } from '../../engine/model/rollout.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';

/** Returns the kind of the objects that carry the signals of a stage. */
export type ResourceOf = (stage: Pick<Stage, 'role' | 'procedure'>) => Resource;

export interface SignalObjects {
  /** Returns the object of a target; undefined if it does not exist. */
  readonly objectOf: (
    world: World,
    stage: Stage,
    target: Pick<Target, 'name'>,
  ) => KubeObject | undefined;
  /** Returns the instruction that writes the object; undefined if there is no object. */
  readonly replacing: (stage: Stage, object: KubeObject | undefined) => Instruction | undefined;
}

/** Finds and replaces objects of the kinds that `resourceOf` returns. */
export function signalObjects(resourceOf: ResourceOf): SignalObjects {
  return {
    objectOf: (world, stage, { name }) => world.get(resourceOf(stage), name),
    replacing: (stage, object) =>
      object && { kind: 'replace', resource: resourceOf(stage), object },
  };
}
