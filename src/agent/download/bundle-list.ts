/** Owns the list of the airgap bundles that the agent placed, so that it never removes one that somebody else did. */
import { isRecord } from '../../util/json.ts';
import type { Files } from '../state/durable-files.ts';
import { writeDurably } from '../state/durable-files.ts';

export interface PlacedBundle {
  /** Of the file in the images directory. */
  readonly name: string;
  readonly url: string;
  readonly version: string;
  /** Of the bytes as they were placed. */
  readonly sha256: string;
  /** ETag or date under which the server offered them. */
  readonly validator?: string;
}

/** Oldest first. A list that makes no sense is empty: its bundles then stay, as nobody's. One that the disk withholds is not. */
export async function loadBundles(path: string, files: Files): Promise<readonly PlacedBundle[]> {
  try {
    const value: unknown = JSON.parse(await files.readFile(path, 'utf8'));
    return isRecord(value) && Array.isArray(value['bundles']) ? value['bundles'].filter(isBundle) : [];
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

export async function saveBundles(path: string, bundles: readonly PlacedBundle[], files: Files): Promise<void> {
  await writeDurably(path, `${JSON.stringify({ bundles })}\n`, files);
}

/** With the bundle as the newest, in place of what had its name. */
export function withBundle(bundles: readonly PlacedBundle[], bundle: PlacedBundle): readonly PlacedBundle[] {
  return [...bundles.filter(({ name }) => name !== bundle.name), bundle];
}

function isBundle(value: unknown): value is PlacedBundle {
  return isRecord(value) && ['name', 'url', 'version', 'sha256'].every((key) => typeof value[key] === 'string');
}
