/** Keeps the preview of a drain that is blocked for a moment. */
import type { DrainPreview, DrainPreviewer } from '../../drain/drain-preview.ts';
import type { DrainOptions } from '../../drain/pods.ts';

/** Milliseconds: shorter than the pause before a blocked drain is looked at again. */
const PREVIEW_KEPT_MS = 4_000;

/** Does not preview a blocked drain again at once, whatever woke the plan. `now` in milliseconds by the steady clock. */
export function keptPreviews() {
  const blocked = new Map<string, { readonly drainPreview: DrainPreview; readonly at: number }>();
  return async (
    previewer: Pick<DrainPreviewer, 'ahead'>,
    node: string,
    options: DrainOptions,
    now: number,
  ) => {
    const key = `${node} ${JSON.stringify(options)}`;
    const known = blocked.get(key);
    if (known && now - known.at < PREVIEW_KEPT_MS) return known.drainPreview;
    const drainPreview = await previewer.ahead(node, options);
    const isBlocked = drainPreview.obstacles.length + drainPreview.refused.length > 0;
    if (isBlocked) blocked.set(key, { drainPreview, at: now });
    else blocked.delete(key);
    return drainPreview;
  };
}
