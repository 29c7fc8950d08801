@echo off
rem Does on Windows what the file "serve" beside it does elsewhere, in the same order.
setlocal
set "root=%~dp0.."
set "chosen=%CLAUDE_PLUGIN_OPTION_COMMAND%"
if not defined chosen goto search
if "%chosen:~0,2%"=="${" goto search
if exist "%chosen%\Scripts\stash-skills.exe" set "chosen=%chosen%\Scripts\stash-skills.exe"
if not exist "%chosen%" goto unusable
call "%chosen%" serve
exit /b

:search
set "PATH=%PATH%;%USERPROFILE%\.local\bin"
where /q stash-skills
if not errorlevel 1 goto installed
where /q uv
if not errorlevel 1 goto uv
where /q pipx
if not errorlevel 1 goto pipx
echo stash-skills: found neither stash-skills nor uv nor pipx. Install uv, or name the command in a virtual environment as the plugin's option 'command' (/plugin configure). Then start a new session.>&2
exit /b 127

:unusable
echo stash-skills: the plugin's option 'command' is "%chosen%", which is not there. Correct it with /plugin configure, or empty it.>&2
exit /b 127

:installed
call stash-skills serve
exit /b

:uv
call uv tool run --python ">=3.11" --from "%root%" stash-skills serve
exit /b

:pipx
call pipx run --spec "%root%" stash-skills serve
exit /b
