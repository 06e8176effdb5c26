/** Asks the API server what a user may do. */
import { clusterScoped, type KubeObject } from '../kube/resources.ts';

/** What a user may do, in the words of a SubjectAccessReview. */
export interface AccessQuestion {
  readonly verb: string;
  readonly group?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly namespace?: string;
  /** A path without an object, in place of all other members. */
  readonly path?: string;
}

/** An object in which the API server answers such a question. */
export interface AccessReview extends KubeObject {
  readonly spec: object;
  readonly status?: { readonly allowed?: boolean };
}

/** The API server stores no such object, although the API calls the question a creation. */
export const accessReviews = clusterScoped<AccessReview>(
  'authorization.k8s.io/v1',
  'SubjectAccessReview',
);

/** Returns the question whether the user may do this. */
export function reviewOf(
  user: string,
  { verb, path, ...resourceAttributes }: AccessQuestion,
): AccessReview {
  const attributes =
    path === undefined
      ? { resourceAttributes: { verb, ...resourceAttributes } }
      : { nonResourceAttributes: { verb, path } };
  return { metadata: { name: '' }, spec: { user, groups: groupsOf(user), ...attributes } };
}

/** Returns the groups that the API server adds to the user of a ServiceAccount. */
function groupsOf(user: string): string[] {
  const [, namespace] = /^system:serviceaccount:([^:]+):/.exec(user) ?? [];
  if (namespace === undefined) return ['system:authenticated'];
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
}
