/** Keeps the preview of a blocked drain for a short time, so that the same drain is not previewed at every turn. */
import { type DrainPreview, type DrainPreviewer, hasObstacles } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';

/** Milliseconds that a preview is kept. This is less than the pause before the engine previews a blocked drain again. */
const PREVIEW_KEPT_MS = 4_000;

/** Previews the drain of a node, or returns a recent preview. `now` is in milliseconds of the monotonic clock. */
export type PreviewDrain = (
  previewer: Pick<DrainPreviewer, 'ahead'>,
  node: string,
  options: DrainOptions,
  now: number,
) => Promise<DrainPreview>;

/** Returns a function that previews a blocked drain again only after PREVIEW_KEPT_MS, whatever event caused the turn. */
export function keptPreviews(): PreviewDrain {
  const blocked = new Map<string, { readonly drainPreview: DrainPreview; readonly at: number }>();
  return async (previewer, node, options, now) => {
    const key = `${node} ${JSON.stringify(options)}`;
    const known = blocked.get(key);
    if (known && now - known.at < PREVIEW_KEPT_MS) return known.drainPreview;
    const drainPreview = await previewer.ahead(node, options);
    if (hasObstacles(drainPreview)) blocked.set(key, { drainPreview, at: now });
    else blocked.delete(key);
    return drainPreview;
  };
}
