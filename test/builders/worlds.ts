/** Owns worlds for tests: the objects of both roles as a controller that sees everything would see them. */
import type { World } from '../../src/engine/dialect.ts';
import type { Role } from '../../src/engine/model.ts';
import type { KubeObject } from '../../src/kube/types.ts';

export function buildWorld(controllers: readonly KubeObject[], workers: readonly KubeObject[]): World {
  const objects: Readonly<Record<Role, readonly KubeObject[]>> = { controller: controllers, worker: workers };
  return {
    list: (role) => objects[role],
    get: (role, name) => objects[role].find(({ metadata }) => metadata.name === name),
  };
}
