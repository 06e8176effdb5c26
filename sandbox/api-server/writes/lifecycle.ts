/**
 * Stands in for controllers of a real cluster: establishes definitions, and deletes the contents of definitions and
 * namespaces that are being deleted.
 */
import type { Cluster, Resource } from '../cluster.ts';
import { customKind } from '../kinds/custom-kind.ts';
import type { Definition } from '../kinds/definition-kind.ts';
import type { Change, Version } from '../store.ts';
import { deleteObject } from './delete.ts';

/** Watches definitions and namespaces from now on. Calls `onCancelled` for each resource that is no longer served. */
export function runLifecycles(cluster: Cluster, onCancelled: (resource: Resource) => void): void {
  const definitions = cluster.resource('apiextensions.k8s.io', 'customresourcedefinitions');
  const namespaces = cluster.resource('', 'namespaces');
  definitions.collection.listeners.add((change) => {
    if (change.type === 'DELETED') return;
    if (change.version.object.metadata.deletionTimestamp === undefined) {
      cluster.defer(() => establish(cluster, definitions, change.version.key));
    } else if (isBeginning(change))
      emptyDefinition(cluster, definitions, change.version.key, onCancelled);
  });
  namespaces.collection.listeners.add((change) => {
    if (isBeginning(change)) emptyNamespace(cluster, namespaces, change.version.key);
  });
}

const isBeginning = ({ type, version, before }: Change): boolean =>
  type === 'MODIFIED' &&
  version.object.metadata.deletionTimestamp !== undefined &&
  before?.object.metadata.deletionTimestamp === undefined;

/** Serves the definition in its current form. The first time, sets the conditions in its status. */
function establish(cluster: Cluster, { collection }: Resource, key: string): void {
  const current = collection.get(key)?.object as Definition | undefined;
  if (!current) return;
  const kind = customKind(current);
  if (kind) cluster.serve(kind);
  if (current.status.conditions !== null) return;
  const next = structuredClone(current);
  const lastTransitionTime = cluster.timestamp();
  const met = (type: string, reason: string, message: string): Record<string, string> => {
    return { type, status: 'True', lastTransitionTime, reason, message };
  };
  next.status.conditions = [
    met('NamesAccepted', 'NoConflicts', 'no conflicts found'),
    met('Established', 'InitialNamesAccepted', 'the initial names have been accepted'),
  ];
  next.status.acceptedNames = next.spec.names;
  collection.put(key, next);
}

function emptyDefinition(
  cluster: Cluster,
  definitions: Resource,
  key: string,
  onCancelled: (resource: Resource) => void,
): void {
  const definition = definitions.collection.get(key)?.object as Definition | undefined;
  const resource = definition && cluster.find(definition.spec.group, definition.spec.names.plural);
  emptyOut(
    cluster,
    resource ? [resource] : [],
    () => true,
    () => {
      const version = definitions.collection.get(key);
      if (resource) {
        cluster.cancel(resource.kind);
        onCancelled(resource);
      }
      if (version) definitions.collection.remove(version);
    },
  );
}

function emptyNamespace(cluster: Cluster, namespaces: Resource, name: string): void {
  const inside = ({ object }: Version): boolean => object.metadata.namespace === name;
  const resources = cluster.resources().filter(({ kind }) => kind.namespaced);
  emptyOut(cluster, resources, inside, () => {
    const version = namespaces.collection.get(name);
    if (version) namespaces.collection.remove(version);
  });
}

/**
 * Deletes the objects for which `inside` is true, and calls `done` when they are gone. Finalizers and running pods can
 * delay that.
 */
function emptyOut(
  cluster: Cluster,
  resources: readonly Resource[],
  inside: (version: Version) => boolean,
  done: () => void,
): void {
  const left = (): [Resource, Version][] =>
    resources.flatMap((resource) =>
      [...resource.collection.values()]
        .filter(inside)
        .map((version): [Resource, Version] => [resource, version]),
    );
  const check = (): void => {
    if (left().length > 0) return;
    for (const { collection } of resources) collection.listeners.delete(onChange);
    done();
  };
  const onChange = ({ type }: Change): void => {
    if (type === 'DELETED') cluster.defer(check);
  };
  cluster.defer(() => {
    for (const { collection } of resources) collection.listeners.add(onChange);
    for (const [resource, version] of left()) deleteObject(cluster, resource, version, {});
    check();
  });
}
