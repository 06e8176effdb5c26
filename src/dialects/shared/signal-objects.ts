/** Finds the object that carries the signals of a target, and replaces it. */
import type { Instruction } from '../../engine/contract/signal.ts';
import type { World } from '../../engine/contract/world.ts';
import type { Stage, Target } from '../../engine/model/rollout.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';

/** Returns the kind of the objects that carry the signals of a stage. */
export type ResourceOf = (stage: Pick<Stage, 'role' | 'procedure'>) => Resource;

/** `objectOf` returns undefined if the object does not exist. `replacing` returns undefined without an object. */
export function signalObjects(resourceOf: ResourceOf) {
  return {
    objectOf: (
      world: World,
      stage: Stage,
      { name }: Pick<Target, 'name'>,
    ): KubeObject | undefined => world.get(resourceOf(stage), name),
    replacing: (stage: Stage, object: KubeObject | undefined): Instruction | undefined =>
      object && { kind: 'replace', resource: resourceOf(stage), object },
  };
}
