/** Says whether a node can reach the volumes of a pod. */
import { clusterScoped, type KubeObject, keyAt, namespaced } from '../../kube/resources.ts';
import type { NodeSelectorTerm, PlacedPod, PlacedSpec } from '../pods.ts';
import { meetsTerms, type NoRoom, type RoomPlace } from './node-rules.ts';

export interface VolumeClaim extends KubeObject {
  readonly spec?: { readonly volumeName?: string };
}

export interface PlacedVolume extends KubeObject {
  readonly spec?: {
    readonly nodeAffinity?: {
      readonly required?: { readonly nodeSelectorTerms?: readonly NodeSelectorTerm[] };
    };
  };
}

export const claims = namespaced<VolumeClaim>('v1', 'PersistentVolumeClaim');
export const placedVolumes = clusterScoped<PlacedVolume>('v1', 'PersistentVolume');

export interface Volumes {
  /** Returns the terms of each volume of the pod that is bound. A node must meet one term of each volume. */
  termsOf(spec: PlacedSpec, namespace: string): readonly (readonly NodeSelectorTerm[])[];
  /** Returns the name of a claim of the pod whose volume is not known; undefined if there is none. */
  unboundClaimOf(spec: PlacedSpec, namespace: string): string | undefined;
}

export function volumesOf(
  foundClaims: readonly VolumeClaim[],
  foundVolumes: readonly PlacedVolume[],
): Volumes {
  const volumes = new Map(foundVolumes.map((each) => [each.metadata.name, each]));
  const bound = new Map(
    foundClaims.map(({ metadata: { name, namespace }, spec }) => [
      keyAt(name, namespace),
      volumes.get(spec?.volumeName ?? ''),
    ]),
  );
  return {
    termsOf: (spec, namespace) =>
      claimNames(spec).flatMap((name) => {
        const volume = bound.get(keyAt(name, namespace));
        const terms = volume?.spec?.nodeAffinity?.required?.nodeSelectorTerms;
        return terms === undefined ? [] : [terms];
      }),
    // The claim of an ephemeral volume goes with its pod, so the next pod gets a new one.
    unboundClaimOf: (spec, namespace) =>
      claimNames(spec).find((name) => bound.get(keyAt(name, namespace)) === undefined),
  };
}

function claimNames({ volumes = [] }: PlacedSpec): string[] {
  return volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []);
}

/** Returns that a volume of the pod stays elsewhere; undefined if the node can reach all of them. */
export function volumeRefusal(
  { spec = {}, metadata: { namespace = '' } }: PlacedPod,
  place: RoomPlace,
  volumes: Volumes,
): NoRoom | undefined {
  const isMet = volumes.termsOf(spec, namespace).every((terms) => meetsTerms(terms, place));
  return isMet ? undefined : 'no access to its volume';
}
