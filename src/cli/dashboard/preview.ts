/** Previews plans whose text a viewer gives to the page: the same function as `refit preview -f`, as that viewer. It writes nothing and reads no file. */
import type { ConnectionFlags } from '../options.ts';
import { previewTexts } from '../preview/preview-command.ts';
import type { SessionParts } from '../status/status-session.ts';
import { captured } from './captured.ts';
import type { ActionResult } from './state.ts';

/** Each plan costs a pass over all Nodes, and a controller that serves the page has other work. */
const MOST_PLANS = 10;
/** The name of the text in errors. */
const PLACE = 'the text';

/** Resolves with the output of the command, and with one sentence for each problem. */
export async function previewText(
  text: string,
  flags: ConnectionFlags,
  parts: Omit<SessionParts, 'output'>,
): Promise<ActionResult> {
  const files = [{ path: PLACE, text, isFromFolder: false }];
  return await captured(
    async (output) =>
      await previewTexts(
        files,
        { ...flags, output: 'text', mostPlans: MOST_PLANS },
        { ...parts, output },
      ),
  );
}
