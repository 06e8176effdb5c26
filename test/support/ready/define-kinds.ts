/** Defines kinds of other products in a real API server, with schemas that accept any fields. */
import type { KubeClient } from '../../../src/kube/client.ts';
import { customResourceDefinitions } from '../../../src/kube/resources.ts';
import { isAlreadyExists } from '../../../src/kube/status-error.ts';
import { sleep, systemClock } from '../../../src/util/clock.ts';
import { CUSTOM_KINDS } from './planted-objects.ts';

const POLL_MS = 50;

/** A kind as its group, version, name and plural. */
type DefinedKind = readonly [group: string, version: string, kind: string, plural: string];

/**
 * Creates the definitions of the kinds of other products, and waits until they are served. Returns the names of the
 * definitions that this call created. A test on a shared control plane must delete them.
 */
export async function defineKinds(
  client: KubeClient,
  abort: AbortSignal,
  kinds: readonly DefinedKind[] = CUSTOM_KINDS,
): Promise<string[]> {
  const created: string[] = [];
  for (const [group, version, kind, plural] of kinds) {
    const schema = {
      openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    };
    const spec = {
      group,
      scope: 'Namespaced',
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [{ name: version, served: true, storage: true, schema }],
    };
    const name = `${plural}.${group}`;
    try {
      await client.create(customResourceDefinitions, { metadata: { name }, spec });
      created.push(name);
    } catch (error) {
      // Another test of the same API server may have defined the kind.
      if (!isAlreadyExists(error)) throw error;
    }
    for (;;) {
      const { status } = await client.raw(`/apis/${group}/${version}/${plural}`, { abort });
      if (status === 200) break;
      await sleep(systemClock, POLL_MS, abort);
    }
  }
  return created;
}
