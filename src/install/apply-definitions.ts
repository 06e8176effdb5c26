/**
 * Applies the definitions of the kinds that `refit controller` needs. Leaves a definition unchanged if a newer Refit
 * applied it, or if it belongs to another field manager, such as k0s, Helm or kubectl.
 */
import type { KubeClient } from '../kube/client.ts';
import {
  type CustomResourceDefinition,
  clusterScoped,
  customResourceDefinitions,
  type Resource,
} from '../kube/resources.ts';
import {
  ifFound,
  isConflict,
  isForbidden,
  isMissingRight,
  isNotFound,
} from '../kube/status-error.ts';
import { tryList } from '../kube/try-list.ts';
import { sleep } from '../util/clock.ts';
import { formatDuration } from '../util/duration.ts';
import { messageOf, RefitError } from '../util/errors.ts';
import type { BasicTools } from '../util/tools.ts';
import { compareVersionTexts } from '../util/version.ts';
import { kindsOfK0s, objectsIn } from './manifests.ts';

/** The field manager. It is used only for definitions, so that it never owns fields that a person applied. */
const FIELD_MANAGER = 'refit-definitions';
/** The annotation with the version of Refit that applied a definition last. */
export const APPLIED_BY_ANNOTATION = 'upgrade.refit.dev/definition-version';

const POLL_MS = 200;
/** How long the API server may take to serve a kind that was just defined. */
const PATIENCE_MS = 60_000;
/** An API server that has just started may deny every request for some seconds. */
const FORBIDDEN_MS = 5_000;
const FORBIDDEN_PAUSE_MS = 1_000;
/** The number of times that a definition may change between the read and the write of Refit. */
const MOST_TRIES = 10;

export interface DefinitionsRun extends BasicTools {
  readonly client: KubeClient;
  /** The version of this Refit. */
  readonly version: string;
  readonly abort: AbortSignal;
}

/**
 * Resolves when the API server serves all kinds. Rejects with REFIT_FORBIDDEN if the user has no right to read or apply
 * definitions.
 */
export async function applyDefinitions(run: DefinitionsRun): Promise<void> {
  const objects = objectsIn(kindsOfK0s());
  const definitions = objects.filter(
    (object): object is CustomResourceDefinition => object.kind === 'CustomResourceDefinition',
  );
  for (const definition of definitions) await applyWhenAllowed(definition, run);
  for (const definition of definitions) await waitUntilServed(definition, run);
}

async function applyWhenAllowed(
  definition: CustomResourceDefinition,
  run: DefinitionsRun,
): Promise<void> {
  const end = run.clock.monotonic() + FORBIDDEN_MS;
  for (;;) {
    try {
      await applyOne(definition, run);
      return;
    } catch (error) {
      // The first answers of an API server may lack any right, or say that its admission is not ready yet.
      if (!isForbidden(error)) throw error;
      if (run.clock.monotonic() >= end) throw isMissingRight(error) ? missingRight(error) : error;
    }
    await sleep(run.clock, FORBIDDEN_PAUSE_MS, run.abort);
  }
}

function missingRight(cause: Error): RefitError {
  return new RefitError(
    'REFIT_FORBIDDEN',
    `--apply-crds needs the right to get, create and patch definitions: ${messageOf(cause)}`,
    {
      hint: 'apply what `refit install rights crds` prints, or apply the definitions yourself and start without --apply-crds',
      cause,
    },
  );
}

/**
 * Applies one definition. Starts again if an existing definition changes between the read and the write. Two versions
 * of Refit can overwrite each other only if both find no definition within the same milliseconds. The newer version
 * then applies its definition again at its next start.
 */
async function applyOne(definition: CustomResourceDefinition, run: DefinitionsRun): Promise<void> {
  const { client, version, abort, log } = run;
  const { name } = definition.metadata;
  for (let tries = 1; ; tries += 1) {
    const before = await ifFound(client.get(customResourceDefinitions, name, { abort }));
    const found = before?.metadata.annotations?.[APPLIED_BY_ANNOTATION];
    if (compareVersionTexts(found, version) > 0) {
      log.info('left a definition as it is, because a newer Refit applied it', { name, found });
      return;
    }
    try {
      const after = await client.patch(
        customResourceDefinitions,
        name,
        patchFor(definition, version, before?.metadata.resourceVersion),
        { type: 'apply', fieldManager: FIELD_MANAGER, abort },
      );
      if (before?.metadata.resourceVersion !== after.metadata.resourceVersion)
        log.info('applied a definition', { name, version });
      return;
    } catch (error) {
      if (isOwnedByOthers(error)) {
        log.warn(
          'left a definition as it is, because somebody else applied another version of it; to change it, apply deploy/crds of this release with the tool that applied that version',
          { name, problem: messageOf(error) },
        );
        return;
      }
      if (!isConflict(error) || tries >= MOST_TRIES) throw error;
    }
  }
}

/**
 * Returns the object to apply. With `resourceVersion`, the API server refuses the object if the definition has changed.
 */
function patchFor(
  { apiVersion, kind, metadata, spec }: CustomResourceDefinition,
  version: string,
  resourceVersion: string | undefined,
): object {
  const annotations = { ...metadata.annotations, [APPLIED_BY_ANNOTATION]: version };
  const precondition = resourceVersion === undefined ? {} : { resourceVersion };
  return {
    apiVersion,
    kind,
    metadata: { name: metadata.name, annotations, ...precondition },
    spec,
  };
}

/** Returns true if other field managers own fields that the definition would change. */
function isOwnedByOthers(error: unknown): boolean {
  if (!isConflict(error)) return false;
  const causes = error.status.details?.causes ?? [];
  return causes.some(({ reason }) => reason === 'FieldManagerConflict');
}

async function waitUntilServed(
  { metadata, spec }: CustomResourceDefinition,
  { client, clock, abort }: DefinitionsRun,
): Promise<void> {
  const { group, names, versions } = spec;
  const resource = clusterScoped(`${group}/${versions[0]?.name}`, names.kind, names.plural);
  const end = clock.monotonic() + PATIENCE_MS;
  while (!(await isServed(client, resource, abort))) {
    if (clock.monotonic() > end)
      throw new RefitError(
        'REFIT_NO_CRD',
        `${metadata.name} is not served after ${formatDuration(PATIENCE_MS)}`,
        { hint: `run \`kubectl describe crd ${metadata.name}\`` },
      );
    await sleep(clock, POLL_MS, abort);
  }
}

/**
 * If the user has no permission to list a kind, the API server returns the same error for a served kind and for an
 * unknown kind. Such a kind counts as served.
 */
async function isServed(
  client: KubeClient,
  resource: Resource,
  abort: AbortSignal,
): Promise<boolean> {
  try {
    return await tryList(client, resource, { abort });
  } catch (error) {
    if (isNotFound(error)) return false;
    if (isForbidden(error)) return true;
    throw error;
  }
}
