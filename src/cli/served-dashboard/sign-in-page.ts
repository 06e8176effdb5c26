/** Writes the page that asks for a token. It needs no script. */

/**
 * The headers of the page. The page may send its form only to this server. Because of the referrer policy, browsers
 * send the header Origin with the form.
 */
export const SIGN_IN_HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
};

/** Returns the page. `problem` is a sentence that says why the last token was refused. */
export function signInPage(problem: string | undefined, isFromElsewhere: boolean): string {
  const note = problem === undefined ? '' : `<p role="alert">${escaped(problem)}</p>`;
  // If a user follows a link from another site, the browser does not send the cookie, so the page cannot know whether the user is signed
  // in.
  const link = isFromElsewhere
    ? '<p>If you are signed in already, <a href="./">open the dashboard</a>.</p>'
    : '';
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>Refit: sign in</title><link rel="icon" href="data:,"><link rel="stylesheet" href="ui.css"></head><body><header><h1>Refit</h1><div class="notes">${note}</div></header><main><h2>Sign in</h2>${link}<form method="post" action="sign-in"><p><label for="token">Bearer token of your user at the API server</label></p><p><input id="token" name="token" type="password" autocomplete="off" required autofocus> <button type="submit">Sign in</button></p></form><p>To make a token for a service account: <code>kubectl create token NAME --namespace NAMESPACE --duration 8h</code></p></main></body></html>\n`;
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
