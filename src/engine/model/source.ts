/** Owns where a rollout comes from: the plan's own object, as everybody else can find it again. */
import { apiVersionOf, type Resource } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Source } from './recorded.ts';

export function sourceOf<P extends KubeObject>(resource: Resource<P>, { metadata }: P): Source {
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name: metadata.name,
    uid: metadata.uid ?? '',
    created: metadata.creationTimestamp ?? '',
  };
}
