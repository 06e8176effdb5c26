/** Owns the World as the controller sees it: informers, corrected by its own last writes. */
import type { KubeObject } from '../kube/types.ts';
import type { Dialect, World } from './dialect.ts';
import type { Role } from './model.ts';
import type { OwnWrites, View } from './own-writes.ts';

export type Views = Readonly<Record<Role, View<KubeObject>>>;

export function freshWorld(objects: Dialect['objects'], views: Views, ownWrites: OwnWrites): World {
  const latest = (role: Role, name: string): KubeObject | undefined =>
    ownWrites.latest(objects[role], views[role], name);
  return {
    get: latest,
    list: (role) => views[role].list().map((object) => latest(role, object.metadata.name) ?? object),
  };
}
